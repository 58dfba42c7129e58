package p4

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
}

// register is a Register declaration and the stage that the table in the control's comment gives it.
type register struct {
	name    string
	width   int // bits of an element
	index   int // bits of the index
	entries uint64
	stage   int
	listed  int // width in the comment's table
}

var (
	blockComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	lineComment  = regexp.MustCompile(`//[^\n]*`)
	typedefDecl  = regexp.MustCompile(`typedef\s+bit<(\w+)>\s+(\w+);`)
	structDecl   = regexp.MustCompile(`(?s)\bstruct\s+(\w+)\s*\{(.*?)\}`)
	fieldDecl    = regexp.MustCompile(`([\w<>]+)\s+\w+;`)
	constDecl    = regexp.MustCompile(`const\s+[\w<>]+\s+(\w+)\s*=\s*(\w+)\s*;`)
	macroDecl    = regexp.MustCompile(`(?m)^#define\s+(\w+)\s+(\w+)\s*$`)
	registerDecl = regexp.MustCompile(`\bRegister<([\w<>]+),\s*([\w<>]+)>\((\w+)(?:,[^;]*)?\)\s+(\w+);`)
	stageRow     = regexp.MustCompile(`(?m)^ \*\s+(\d+)\s+(\w+)\s+(\d+(?: \+ \d+)*)\s+\S`)
	bitType      = regexp.MustCompile(`^bit<(\w+)>$`)
	literal      = regexp.MustCompile(`^(?:\d+w)?(0x[0-9a-fA-F]+|\d+)$`)
)

// readTwin reads all P4 files of a twin's folder.
func readTwin(folder string) (*source, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.p4"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("read twin %s: no P4 files", folder)
	}
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read twin %s: %w", folder, err)
		}
		all.Write(text)
	}
	return parse(all.String())
}

func parse(text string) (*source, error) {
	s := &source{constants: map[string]uint64{}, widths: map[string]int{}, registers: map[string]register{}}
	s.comments = strings.Join(blockComment.FindAllString(text, -1), "\n")
	s.text = lineComment.ReplaceAllString(blockComment.ReplaceAllString(text, " "), "")
	for _, decl := range []*regexp.Regexp{macroDecl, constDecl} {
		for _, m := range decl.FindAllStringSubmatch(s.text, -1) {
			if n, ok := number(m[2]); ok {
				s.constants[m[1]] = n
			}
		}
	}
	if err := s.types(); err != nil {
		return nil, err
	}
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

func (s *source) types() error {
	for _, m := range typedefDecl.FindAllStringSubmatch(s.text, -1) {
		width, err := s.value(m[1])
		if err != nil {
			return fmt.Errorf("read type %s: %w", m[2], err)
		}
		s.widths[m[2]] = int(width)
	}
	for _, m := range structDecl.FindAllStringSubmatch(s.text, -1) {
		width := 0
		for _, field := range fieldDecl.FindAllStringSubmatch(m[2], -1) {
			w, err := s.width(field[1])
			if err != nil {
				width = 0 // of a type in p4/include: no register holds it
				break
			}
			width += w
		}
		s.widths[m[1]] = width
	}
	return nil
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
	for _, m := range registerDecl.FindAllStringSubmatch(s.text, -1) {
		r := register{name: m[4], stage: -1}
		var errs [3]error
		r.width, errs[0] = s.width(m[1])
		r.index, errs[1] = s.width(m[2])
		r.entries, errs[2] = s.value(m[3])
		for _, err := range errs {
			if err != nil {
				return fmt.Errorf("read register %s: %w", r.name, err)
			}
		}
		s.registers[r.name] = r
	}
	if n := strings.Count(s.text, "Register<"); n != len(s.registers) {
		return fmt.Errorf("%d Register declarations, %d of them understood", n, len(s.registers))
	}
	return s.stages()
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
		s.registers[r.name] = r
	}
	return nil
}
