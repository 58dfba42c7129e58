// Package config parses YAML files by a table of keys, from which the file's JSON schema is generated too. Each error has line and column;
// all errors of a file are reported together.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/nearest"
)

// Parser collects errors.
type Parser struct {
	File     string // file name in errors
	Problems []Problem
	Depth    int // maximum depth of nesting; 0: 20
	depth    int
}

// Errorf records an error at a node.
func (p *Parser) Errorf(n *yaml.Node, format string, args ...any) {
	p.Problems = append(p.Problems, Problem{p.File, max(1, n.Line), max(1, n.Column), bounded(fmt.Sprintf(format, args...))})
}

// Err is all recorded errors, in the order of the file: an *Error, or nil.
func (p *Parser) Err() error {
	if len(p.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(p.Problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &Error{p.Problems}
}

// Read parses one document to nodes. nil: an error was recorded; lacks names the required key in the error for an
// empty file.
func (p *Parser) Read(text []byte, lacks string) *yaml.Node {
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&doc)
	if err == nil {
		if err = d.Decode(&more); err == nil {
			p.Errorf(&more, "second document: a configuration is a single document")
			return nil
		}
	}
	switch {
	case errors.Is(err, io.EOF) && len(doc.Content) == 1:
		return doc.Content[0]
	case errors.Is(err, io.EOF):
		p.Errorf(&yaml.Node{}, "the file is empty: %s missing", lacks)
	default:
		p.syntax(err, text)
	}
	return nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntax records a syntax error at the line in the library's message, and the column of its first character: the library reports no column.
func (p *Parser) syntax(err error, text []byte) {
	n, what := &yaml.Node{Line: 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(what); m != nil {
		n.Line, _ = strconv.Atoi(m[1])
		what = strings.Replace(what, m[0], "", 1)
	}
	if lines := strings.Split(string(text), "\n"); n.Line <= len(lines) {
		for _, at := range []int{n.Line, n.Line + 1} { // the library also names the line before it
			if at <= len(lines) && strings.Contains(indentation(lines[at-1]), "\t") {
				n.Line, what = at, "a tab: YAML is indented by spaces"
				break
			}
		}
		line := lines[n.Line-1]
		n.Column = len(line) - len(strings.TrimLeft(line, " \t")) + 1
	}
	p.Errorf(n, "no YAML: %s", what)
}

func indentation(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// maxDepth is more than any key nests, and ends recursive aliases.
const maxDepth = 20

// enter follows an alias and checks the depth; leave must be called if it returned a node.
func (p *Parser) enter(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if p.depth++; p.depth > max(p.Depth, maxDepth) {
		p.Errorf(n, "nested too deeply")
		p.depth--
		return nil
	}
	return n
}

func (p *Parser) leave() { p.depth-- }

// Pair is an entry of a mapping.
type Pair struct{ Key, Value *yaml.Node }

// Pairs are the entries of a mapping; duplicate keys are recorded as errors. ok is false if n is not a mapping.
func (p *Parser) Pairs(n *yaml.Node, what string) (list []Pair, ok bool) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, true
	}
	if n.Kind != yaml.MappingNode {
		p.Errorf(n, "%s is a mapping (key: value), not %s", what, Describe(n))
		return nil, false
	}
	ok = true
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			p.Errorf(k, "a key is a word, not %s", Describe(k))
			ok = false
			continue
		}
		if first := seen[k.Value]; first != nil {
			p.Errorf(k, "%s is given twice: line %d has it, too", k.Value, first.Line)
			ok = false
			continue
		}
		seen[k.Value] = k
		list = append(list, Pair{k, n.Content[i+1]})
	}
	return list, ok
}

func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	return strconv.Quote(n.Value)
}

// Unknown records an error about an unknown key.
func (p *Parser) Unknown(k *yaml.Node, what string, names []string) {
	p.Errorf(k, "%s has no key %s: there are %s%s", what, strconv.Quote(k.Value), strings.Join(names, ", "), nearest.Hint(k.Value, names))
}
