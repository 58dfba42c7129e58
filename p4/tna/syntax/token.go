package syntax

import (
	"fmt"
	"slices"
	"strings"
)

// Pos is a position in the text; tokens from a macro have the position of its use.
type Pos struct {
	File string
	Line int
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// At gives Pos, and every node that embeds it, a position.
func (p Pos) At() Pos { return p }

// Error is an error with its position.
type Error struct {
	Pos
	Msg string
}

func (e *Error) Error() string { return e.Pos.String() + ": " + e.Msg }

// Errorf makes an Error.
func Errorf(at Pos, format string, args ...any) error {
	return &Error{Pos: at, Msg: fmt.Sprintf(format, args...)}
}

// Throw panics with an Error; Catch turns it into the result of a function. Grammar and checks are deeply recursive, and
// the first error ends them.
func Throw(at Pos, format string, args ...any) { panic(Errorf(at, format, args...)) }

// Catch is deferred.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		panic(r)
	}
}

type kind uint8

const (
	kindEnd kind = iota
	kindName
	kindNumber
	kindString
	kindMark
)

type token struct {
	Pos
	kind   kind
	text   string
	first  bool     // on its line
	spaced bool     // not directly after the token before it
	hidden []string // macros that it was expanded from, and that are not expanded in it again
}

func (t *token) is(text string) bool { return t.kind == kindMark && t.text == text }

func (t *token) String() string {
	if t.kind == kindEnd {
		return "the end of the file"
	}
	return "`" + t.text + "`"
}

// marks, longest first. Two > are a shift only within an expression: the grammar joins them.
var marks = []string{"&&&", "|+|", "|-|", "##", "<<", "<=", ">=", "==", "!=", "&&", "||", "++", "..",
	"{", "}", "(", ")", "[", "]", "<", ">", ";", ":", ",", ".", "=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "?", "@", "#"}

// lexer splits a file into tokens.
type lexer struct {
	file, text string
	at, line   int
	first      bool
	spaced     bool
}

// bytesOfToken is a lower bound of a program's average bytes per token, with blanks and comments.
const bytesOfToken = 6

func lex(file, text string) []token {
	l := &lexer{file: file, text: text, line: 1, first: true}
	all := make([]token, 0, len(text)/bytesOfToken)
	for l.skip(); l.at < len(l.text); l.skip() {
		t := l.next()
		t.first, t.spaced = l.first, l.spaced
		l.first, l.spaced = false, false
		all = append(all, t)
	}
	return all
}

// skip skips blanks, comments and joined lines.
func (l *lexer) skip() {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		n := 1
		switch {
		case strings.HasPrefix(rest, "\\\n"):
			n, l.line = 2, l.line+1
		case rest[0] == '\n':
			l.line, l.first = l.line+1, true
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
		case strings.HasPrefix(rest, "//"):
			if n = strings.IndexByte(rest, '\n'); n < 0 {
				n = len(rest)
			}
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				Throw(l.pos(), "a comment that does not end")
			}
			n = end + 2
			l.line += strings.Count(rest[:n], "\n")
		default:
			return
		}
		l.at, l.spaced = l.at+n, true
	}
}

func (l *lexer) pos() Pos { return Pos{File: l.file, Line: l.line} }

func (l *lexer) next() token {
	rest, t := l.text[l.at:], token{Pos: l.pos()}
	switch c := rest[0]; {
	case isLetter(c):
		t.kind, t.text = kindName, span(rest, func(c byte) bool { return isLetter(c) || isDigit(c) })
	case isDigit(c):
		t.kind, t.text = kindNumber, span(rest, func(c byte) bool { return isLetter(c) || isDigit(c) })
	case c == '"':
		end := strings.IndexAny(rest[1:], "\"\n")
		if end < 0 || rest[1+end] == '\n' {
			Throw(t.Pos, "a string that does not end on its line")
		}
		t.kind, t.text = kindString, rest[:end+2]
	default:
		i := slices.IndexFunc(marks, func(m string) bool { return strings.HasPrefix(rest, m) })
		if i < 0 {
			Throw(t.Pos, "%q is no part of P4", c)
		}
		t.kind, t.text = kindMark, marks[i]
	}
	l.at += len(t.text)
	return t
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func span(text string, in func(byte) bool) string {
	for i := range len(text) {
		if !in(text[i]) {
			return text[:i]
		}
	}
	return text
}
