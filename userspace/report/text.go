package report

import (
	"strings"
	"unicode/utf8"
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

// length counts characters, not bytes.
func length(text string) int { return utf8.RuneCountInString(text) }

// padRight and padLeft fill with blanks up to n characters.
func padRight(text string, n int) string { return text + blanks(n-length(text)) }

func padLeft(text string, n int) string { return blanks(n-length(text)) + text }

func blanks(n int) string { return strings.Repeat(" ", max(0, n)) }

// clip cuts a line to n characters and marks the cut.
func (s Style) clip(text string, n int) string {
	if length(text) <= n {
		return text
	}
	mark := s.glyph("…", "~")
	if n < 1 {
		return ""
	}
	return string([]rune(text)[:n-1]) + mark
}

// wrap breaks a sentence at blanks into lines of at most width characters; the second and later ones are indented.
// A word longer than a line is cut into pieces.
func wrap(text string, width, indent int) []string {
	var lines []string
	line := ""
	for _, word := range splitLong(strings.Fields(text), width-indent) {
		switch {
		case line == "":
			line = word
		case length(line)+1+length(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = blanks(indent) + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func splitLong(words []string, width int) []string {
	var out []string
	for _, w := range words {
		runes := []rune(w)
		for len(runes) > width {
			out = append(out, string(runes[:width]))
			runes = runes[width:]
		}
		out = append(out, string(runes))
	}
	return out
}

// sideBySide puts two blocks of lines beside each other.
func sideBySide(left, right []string, gap int) []string {
	wide := 0
	for _, l := range left {
		wide = max(wide, length(l))
	}
	lines := make([]string, 0, max(len(left), len(right)))
	for i := range max(len(left), len(right)) {
		l, r := lineAt(left, i), lineAt(right, i)
		lines = append(lines, strings.TrimRight(padRight(l, wide+gap)+r, " "))
	}
	return lines
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// grid aligns cells in columns two blanks apart; right says which columns are aligned to the right.
type grid struct {
	right []bool
	rows  [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

func (g *grid) widths() []int {
	var widths []int
	for _, row := range g.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], length(c))
		}
	}
	return widths
}

func (g *grid) lines() []string {
	widths := g.widths()
	lines := make([]string, 0, len(g.rows))
	for _, row := range g.rows {
		cells := make([]string, len(row))
		for i, c := range row {
			if i < len(g.right) && g.right[i] {
				cells[i] = padLeft(c, widths[i])
			} else {
				cells[i] = padRight(c, widths[i])
			}
		}
		lines = append(lines, strings.TrimRight(strings.Join(cells, "  "), " "))
	}
	return lines
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
	return printable(strings.ReplaceAll(name, "_", " "))
}

// Align sets rows of cells in columns two blanks apart, for lists outside of reports.
func Align(rows [][]string) []string {
	g := grid{rows: rows}
	return g.lines()
}

// Wrap breaks a paragraph into lines that fit the style's width.
func Wrap(paragraph string, style Style) []string { return wrap(paragraph, style.width(), 0) }
