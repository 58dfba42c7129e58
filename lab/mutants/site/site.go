// Package site finds the places of a source file where one small change makes a mutant: a comparison turned, a constant off by
// one, a statement dropped. It reads C by its tokens and Go by its syntax, and never touches comments, strings or what only a
// person reads.
package site

import (
	"bytes"
	"fmt"
	"strings"
)

// Site is one possible change.
type Site struct {
	File     string // from the root of the tree
	Line     int
	Operator string // the kind of change
	From, To int    // bytes of the file that are replaced
	Old, New string
}

// Apply makes the change.
func (s Site) Apply(text []byte) []byte {
	return bytes.Join([][]byte{text[:s.From], []byte(s.New), text[s.To:]}, nil)
}

// Key names a change by what is changed and not by where it stands, so that it survives edits elsewhere in the file.
func (s Site) Key(text []byte) string {
	start := bytes.LastIndexByte(text[:s.From], '\n') + 1
	end := len(text)
	if n := bytes.IndexByte(text[s.To:], '\n'); n >= 0 {
		end = s.To + n
	}
	line := string(text[start:s.From]) + "«" + s.Old + "»→«" + s.New + "»" + string(text[s.To:end])
	return s.File + ": " + strings.Join(strings.Fields(line), " ")
}

func (s Site) String() string {
	return fmt.Sprintf("%s:%d %s: %s → %s", s.File, s.Line, s.Operator, brief(s.Old), brief(s.New))
}

// brief is one line of a change.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "nothing"
	}
	if r := []rune(text); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return text
}

// swaps are the operators that stand for another: the kind of change, and what an operator becomes.
var swaps = map[string]struct{ operator, to string }{
	"<": {"boundary", "<="}, "<=": {"boundary", "<"}, ">": {"boundary", ">="}, ">=": {"boundary", ">"},
	"==": {"comparison", "!="}, "!=": {"comparison", "=="},
	"&&": {"connective", "||"}, "||": {"connective", "&&"},
	"+": {"arithmetic", "-"}, "-": {"arithmetic", "+"}, "*": {"arithmetic", "/"}, "/": {"arithmetic", "*"},
	"<<": {"shift", ">>"}, ">>": {"shift", "<<"},
	"+=": {"assignment", "-="}, "-=": {"assignment", "+="}, "|=": {"assignment", "&="}, "&=": {"assignment", "|="},
	"++": {"assignment", "--"}, "--": {"assignment", "++"},
}

// lines counts newlines as offsets are asked for in order.
func line(text []byte, offset int) int { return 1 + bytes.Count(text[:offset], []byte{'\n'}) }
