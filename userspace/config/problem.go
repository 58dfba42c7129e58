package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Problem is one complaint, and where.
type Problem struct {
	File         string
	Line, Column int // from 1
	Text         string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
}

// Error is a file that is refused.
type Error struct{ Problems []Problem }

// Bounds of a complaint: what a file has in it is quoted, and a value may have as many characters as the file.
const (
	mostWord     = 100 // characters
	mostText     = 1200
	mostProblems = 50 // that are written
)

var longWord = regexp.MustCompile(fmt.Sprintf(`\S{%d,}`, mostWord))

// bounded cuts long words, and the middle of a text that is long all the same.
func bounded(text string) string {
	text = longWord.ReplaceAllStringFunc(text, func(word string) string { return cut(word, mostWord/2, mostWord/4) })
	return cut(text, mostText/2, mostText/2)
}

// cut keeps the first and the last characters of a text.
func cut(text string, first, last int) string {
	runes := []rune(text)
	if len(runes) <= first+last {
		return text
	}
	return fmt.Sprintf("%s...(%d characters)...%s", string(runes[:first]), len(runes)-first-last, string(runes[len(runes)-last:]))
}

func (e *Error) Error() string {
	written := e.Problems[:min(len(e.Problems), mostProblems)]
	lines := make([]string, len(written))
	for i, p := range written {
		lines[i] = p.String()
	}
	if more := len(e.Problems) - len(written); more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d complaints more", e.Problems[0].File, more))
	}
	return strings.Join(lines, "\n")
}
