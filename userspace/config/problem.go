package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Problem is one error with its position.
type Problem struct {
	File         string
	Line, Column int // from 1
	Text         string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
}

// Error is a file with errors.
type Error struct{ Problems []Problem }

// Bounds of an error text: it quotes the file, where a value may be as long as the file.
const (
	mostWord     = 100 // characters of a quoted word
	mostText     = 1200
	mostProblems = 50 // of a listed file
)

var longWord = regexp.MustCompile(fmt.Sprintf(`\S{%d,}`, mostWord))

// bounded shortens long words, then the middle of a text that is still too long.
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
		lines = append(lines, fmt.Sprintf("%s: and %d more errors", e.Problems[0].File, more))
	}
	return strings.Join(lines, "\n")
}
