package p4

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is what the tests know of a twin: enough of P4 to find its registers and who reaches them.
type source struct {
	text      string // of all files, without comments
	comments  string
	constants map[string]uint64
	widths    map[string]int // of typedefs and structs, in bits
	registers map[string]register
	owner     map[string]string // register -> the control that declares it
	absent    []string          // registers of the eBPF form that the comment lists as missing here, with the reason
}

// register is a Register declaration and the stage that the table in the control's comment gives it.
type register struct {
	name    string
	width   int // bits of an element
	index   int // bits of the index
	entries uint64
	stage   int
	listed  int // width in the comment's table
	host    int // width of the eBPF array by that table: "32 of 64" is narrower than the array
}

var (
	blockComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	includeLine  = regexp.MustCompile(`(?m)^#include "([^"]+)"`)
	lineComment  = regexp.MustCompile(`//[^\n]*`)
	typedefDecl  = regexp.MustCompile(`typedef\s+([\w<>]+)\s+(\w+);`)
	controlDecl  = regexp.MustCompile(`(?m)^control\s+(\w+)\s*\([^{;]*\{`)
	instanceDecl = regexp.MustCompile(`(?m)^\s+(\w+)\((\w*)\)\s+(\w+);`)
	structDecl   = regexp.MustCompile(`(?s)\bstruct\s+(\w+)\s*\{(.*?)\}`)
	fieldDecl    = regexp.MustCompile(`([\w<>]+)\s+\w+;`)
	constDecl    = regexp.MustCompile(`const\s+[\w<>]+\s+(\w+)\s*=\s*(\w+)\s*;`)
	macroDecl    = regexp.MustCompile(`(?m)^#define\s+(\w+)\s+(\w+)\s*$`)
	registerDecl = regexp.MustCompile(`\b(?:Register|Lpf)<([\w<>]+),\s*([\w<>]+)>\((\w+)(?:,[^;]*)?\)\s+(\w+);`)
	stageRow     = regexp.MustCompile(`(?m)^ \*\s+(\d+)\s+(\w+)\s+(\d+(?: \+ \d+)*)(?: of (\d+))?\s+\S`)
	absentRow    = regexp.MustCompile(`(?m)^ \*\s+-\s+(\w+_\w+)\s{2,}\S`)
	bitType      = regexp.MustCompile(`^bit<(\w+)>$`)
	setting      = regexp.MustCompile(`--set ([\w-]+)\.([\w.-]+)=(\S+)`)
	literal      = regexp.MustCompile(`^(?:\d+w)?(0x[0-9a-fA-F]+|\d+)$`)
)

// readTwin reads a twin's program: top.p4 and what it includes.
func readTwin(folder string) (*source, error) {
	text, err := follow(filepath.Join(folder, "top.p4"), map[string]bool{})
	if err != nil {
		return nil, fmt.Errorf("read twin %s: %w", folder, err)
	}
	return parse(text)
}

// follow puts the files that a file includes in the place of the directive: each once, but for those that have no guard, which are
// there to be included again with other words in the place of some.
func follow(path string, seen map[string]bool) (string, error) {
	return (&follower{seen: seen}).file(path)
}

type follower struct {
	seen   map[string]bool
	macros []replacement
}

// replacement is a macro that names are made with: of one word, or of one parameter.
type replacement struct {
	name, param, body string
	use               *regexp.Regexp
}

var (
	nameMacro = regexp.MustCompile(`^#define (\w+)\((\w+)\) (\S+)$`)
	wordMacro = regexp.MustCompile(`^#define (\w+) (\w+)$`)
)

func (f *follower) file(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil || f.seen[path] {
		return "", err
	}
	f.seen[path] = strings.Contains(string(raw), "#ifndef XDPMON_")
	var out strings.Builder
	for line := range strings.Lines(string(raw)) {
		text := strings.TrimSpace(line)
		if m := includeLine.FindStringSubmatch(text); m != nil {
			if line, err = f.file(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				return "", err
			}
		} else if m := nameMacro.FindStringSubmatch(text); m != nil {
			f.macros = append(f.macros, replacement{m[1], m[2], m[3], regexp.MustCompile(`\b` + m[1] + `\((\w+)\)`)})
		} else if m := wordMacro.FindStringSubmatch(text); m != nil && strings.Contains(string(raw), "#undef "+m[1]) {
			f.macros = append(f.macros, replacement{name: m[1], body: m[2], use: regexp.MustCompile(`\b` + m[1] + `\b`)})
		} else if name, ok := strings.CutPrefix(text, "#undef "); ok {
			f.macros = slices.DeleteFunc(f.macros, func(r replacement) bool { return r.name == name })
		} else {
			line = f.expand(line)
		}
		out.WriteString(line)
	}
	return out.String(), nil
}

// expand replaces macros until none is left.
func (f *follower) expand(line string) string {
	for before := ""; before != line; {
		before = line
		for _, r := range f.macros {
			line = r.use.ReplaceAllStringFunc(line, func(use string) string {
				if r.param == "" {
					return r.body
				}
				body := regexp.MustCompile(`\b`+r.param+`\b`).ReplaceAllString(r.body, r.use.FindStringSubmatch(use)[1])
				return strings.ReplaceAll(body, "##", "")
			})
		}
	}
	return line
}

func parse(text string) (*source, error) {
	s := &source{constants: map[string]uint64{}, widths: map[string]int{}, registers: map[string]register{}, owner: map[string]string{}}
	s.comments = strings.Join(blockComment.FindAllString(text, -1), "\n")
	s.text = lineComment.ReplaceAllString(blockComment.ReplaceAllString(text, " "), "")
	for _, decl := range []*regexp.Regexp{macroDecl, constDecl} {
		for _, m := range decl.FindAllStringSubmatch(s.text, -1) {
			if n, err := s.value(m[2]); err == nil {
				s.constants[m[1]] = n
			}
		}
	}
	for _, m := range absentRow.FindAllStringSubmatch(s.comments, -1) {
		s.absent = append(s.absent, m[1])
	}
	s.types()
	return s, s.findRegisters()
}

func number(text string) (uint64, bool) {
	m := literal.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 0, 64)
	return n, err == nil
}

// types reads typedefs and structs. Of two typedefs of a name, under opposite #if, the second one counts: that
// is the one for Tofino 1. Types that are not understood, such as stacks of headers, are in no register.
func (s *source) types() {
	for _, m := range typedefDecl.FindAllStringSubmatch(s.text, -1) {
		if width, err := s.width(m[1]); err == nil {
			s.widths[m[2]] = width
		}
	}
	for _, m := range structDecl.FindAllStringSubmatch(s.text, -1) {
		width := 0
		for _, field := range fieldDecl.FindAllStringSubmatch(m[2], -1) {
			w, err := s.width(field[1])
			if err != nil {
				width = 0
				break
			}
			width += w
		}
		s.widths[m[1]] = width
	}
}

// value of a literal or a constant.
func (s *source) value(text string) (uint64, error) {
	if n, ok := number(text); ok {
		return n, nil
	}
	n, ok := s.constants[text]
	if !ok {
		return 0, fmt.Errorf("no value for %q", text)
	}
	return n, nil
}

func (s *source) width(typeName string) (int, error) {
	if m := bitType.FindStringSubmatch(typeName); m != nil {
		n, err := s.value(m[1])
		return int(n), err
	}
	w, ok := s.widths[typeName]
	if !ok || w == 0 {
		return 0, fmt.Errorf("no width for type %q", typeName)
	}
	return w, nil
}

func (s *source) findRegisters() error {
	for control, body := range blocks(s.text, controlDecl) {
		for _, m := range registerDecl.FindAllStringSubmatch(body, -1) {
			if err := s.addRegister(control, m[1], m[2], m[3], m[4]); err != nil {
				return fmt.Errorf("read register %s: %w", m[4], err)
			}
		}
	}
	if n := strings.Count(s.text, "Register<") + strings.Count(s.text, "Lpf<"); n != len(s.registers) {
		return fmt.Errorf("%d declarations of registers and filters, %d of them understood", n, len(s.registers))
	}
	return s.stages()
}

func (s *source) addRegister(control, element, index, size, name string) error {
	r := register{name: name, stage: -1}
	var err error
	if r.width, err = s.width(element); err != nil {
		return err
	}
	if r.index, err = s.width(index); err != nil {
		return err
	}
	if r.entries, err = s.value(size); err != nil {
		r.entries, err = s.argument(control)
	}
	s.registers[name], s.owner[name] = r, control
	return err
}

// argument is what a control is instantiated with, where it takes the size of its register as a parameter.
func (s *source) argument(control string) (uint64, error) {
	for _, m := range instanceDecl.FindAllStringSubmatch(s.text, -1) {
		if m[1] != control {
			continue
		}
		if n, err := s.value(m[2]); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("no instance of %s gives a size", control)
}

// stages reads the table in the control's comment.
func (s *source) stages() error {
	for _, m := range stageRow.FindAllStringSubmatch(s.comments, -1) {
		r, ok := s.registers[m[2]]
		if !ok {
			return fmt.Errorf("the comment lists register %s, which is not declared", m[2])
		}
		r.stage, _ = strconv.Atoi(m[1])
		for _, word := range strings.Split(m[3], " + ") {
			n, _ := strconv.Atoi(word)
			r.listed += n
		}
		r.host = r.listed
		if m[4] != "" {
			r.host, _ = strconv.Atoi(m[4])
		}
		s.registers[r.name] = r
	}
	return nil
}
