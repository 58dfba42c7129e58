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

// Parse checks a configuration; file is its name in complaints.
func Parse(file string, text []byte) (*Config, error) {
	p := &parser{file: file}
	root := p.read(text)
	if root == nil {
		return nil, p.error()
	}
	v, ok := whole().decode(p, root)
	if err := p.error(); err != nil || !ok {
		return nil, err
	}
	c := v.(Config)
	return &c, nil
}

// parser collects complaints.
type parser struct {
	file     string
	problems []Problem
	depth    int
}

func (p *parser) say(n *yaml.Node, format string, args ...any) {
	p.problems = append(p.problems, Problem{p.file, max(1, n.Line), max(1, n.Column), fmt.Sprintf(format, args...)})
}

func (p *parser) error() error {
	if len(p.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &Error{p.problems}
}

// read makes nodes of the text: one document, which is a mapping.
func (p *parser) read(text []byte) *yaml.Node {
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&doc)
	if err == nil {
		if err = d.Decode(&more); err == nil {
			p.say(&more, "a second document begins here: a configuration is one")
			return nil
		}
	}
	switch {
	case errors.Is(err, io.EOF) && len(doc.Content) == 1:
		return doc.Content[0]
	case errors.Is(err, io.EOF):
		p.say(&yaml.Node{}, "the file is empty: instances are missing")
	default:
		p.syntax(err, text)
	}
	return nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntax names the line that the library names, and the column where its text begins: the library tells none.
func (p *parser) syntax(err error, text []byte) {
	n, what := &yaml.Node{Line: 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(what); m != nil {
		n.Line, _ = strconv.Atoi(m[1])
		what = strings.Replace(what, m[0], "", 1)
	}
	if lines := strings.Split(string(text), "\n"); n.Line <= len(lines) {
		line := lines[n.Line-1]
		n.Column = len(line) - len(strings.TrimLeft(line, " \t")) + 1
	}
	p.say(n, "no YAML: %s", what)
}

// maxDepth is far beyond what the keys nest; aliases that name each other end here.
const maxDepth = 20

// enter follows an alias and bounds the depth; leave is to be called when it returned a node.
func (p *parser) enter(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if p.depth++; p.depth > maxDepth {
		p.say(n, "this is nested too deeply")
		p.depth--
		return nil
	}
	return n
}

func (p *parser) leave() { p.depth-- }

// pair is an entry of a mapping.
type pair struct{ key, value *yaml.Node }

// pairs are the entries of a mapping, each key once; ok is false for what is none.
func (p *parser) pairs(n *yaml.Node, what string) (list []pair, ok bool) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, true
	}
	if n.Kind != yaml.MappingNode {
		p.say(n, "%s is a mapping (key: value), not %s", what, describe(n))
		return nil, false
	}
	ok = true
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			p.say(k, "a key is a word, not %s", describe(k))
			ok = false
			continue
		}
		if first := seen[k.Value]; first != nil {
			p.say(k, "%s is given twice: line %d has it, too", k.Value, first.Line)
			ok = false
			continue
		}
		seen[k.Value] = k
		list = append(list, pair{k, n.Content[i+1]})
	}
	return list, ok
}

func describe(n *yaml.Node) string {
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

func (p *parser) unknown(k *yaml.Node, what string, names []string) {
	p.say(k, "%s has no key %s: there are %s%s", what, strconv.Quote(k.Value), strings.Join(names, ", "), nearest.Hint(k.Value, names))
}
