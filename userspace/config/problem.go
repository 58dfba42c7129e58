package config

import (
	"fmt"
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

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
