package report

import (
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Style describes a terminal, and the level of detail.
type Style struct {
	Width   int  // columns, at least 40; 0 means 80
	Unicode bool // box and block characters, else ASCII
	// Brief omits the counters about the measurement itself: findings, rates, distributions and tables remain.
	Brief bool
	// Findings are evaluated: if there are none, that is stated.
	Findings bool
	few      int // most rows of a table; 0: as many as Brief allows
	// dense selects how many dispensable parts are omitted on a small screen.
	dense density
}

// density of a block: airy for paper and large screens; dense has no blank lines, rules, memory and reasons, and no intervals
// next to a truth; bare has only the plain numbers that are compared with a truth.
type density int

const (
	airy density = iota
	dense
	bare
)

// denser lists styles with successively fewer lines.
func (s Style) denser() (list []Style) {
	if s.Brief {
		for _, few := range []int{5, 3} {
			s.few = few
			list = append(list, s)
		}
	}
	for s.dense = dense; s.dense <= bare; s.dense++ {
		list = append(list, s)
	}
	if s.Brief {
		s.few = 1
		list = append(list, s)
	}
	return list
}

const (
	defaultWidth = 80
	minWidth     = 40
)

func (s Style) width() int {
	if s.Width == 0 {
		return defaultWidth
	}
	return max(s.Width, minWidth)
}

// glyph picks the first when the terminal shows Unicode, else the second.
func (s Style) glyph(unicode, ascii string) string {
	if s.Unicode {
		return unicode
	}
	return ascii
}

// spaced puts a blank line before a part, unless the style is dense.
func (s Style) spaced(lines []string) []string {
	if s.dense > airy || len(lines) == 0 {
		return lines
	}
	return append([]string{""}, lines...)
}

// clip cuts a line to n characters and marks the cut.
func (s Style) clip(text string, n int) string {
	return typeset.Clip(text, n, s.glyph("…", "~"))
}

// plainWords converts a JSON name to words: "match_rate" is "match rate", "delay_ns.p50" is "delay p50".
func plainWords(name string, unit Unit) string {
	name = strings.ReplaceAll(name, ".", " ")
	switch unit {
	case Nanosecond:
		name = strings.TrimSuffix(name, "_ns")
	case Bytes:
		name = strings.TrimSuffix(name, "_bytes")
	}
	name = strings.ReplaceAll(name, "_ns ", " ")
	return typeset.Printable(strings.ReplaceAll(name, "_", " "))
}

// Align sets rows of cells in columns two blanks apart, for lists outside of reports.
func Align(rows [][]string) []string {
	g := typeset.Grid{Rows: rows}
	return g.Lines()
}

// Wrap breaks a paragraph into lines that fit the style's width.
func Wrap(paragraph string, style Style) []string { return typeset.Wrap(paragraph, style.width(), 0) }
