package report

import (
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Style is what a terminal can show.
type Style struct {
	Width   int  // columns, at least 40; 0 means 80
	Unicode bool // box and block characters, else ASCII
	// Brief leaves the counters away that say how the measuring went: findings, rates, distributions and tables stay.
	Brief bool
	// Findings are looked for: where there are none, that is stated.
	Findings bool
	few      int // rows of a table at most; 0: as many as Brief lets
	// dense says how much of what a small screen can do without is left away.
	dense density
}

// density of a block: airy for paper and large screens; dense has no blank lines, rules, memory and reasons, and beside
// a truth no intervals; bare has only those plain numbers that are compared with a truth.
type density int

const (
	airy density = iota
	dense
	bare
)

// denser are styles that need fewer and fewer lines.
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

// spaced puts a blank line before a part when there is room for it.
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

// plainWords turns a JSON name into words: "match_rate" is "match rate", "delay_ns.p50" is "delay p50".
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
