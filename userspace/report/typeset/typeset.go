// Package typeset sets text in lines and columns of a terminal. It is independent of reports.
package typeset

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Length counts characters, not bytes.
func Length(text string) int { return utf8.RuneCountInString(text) }

// PadRight and PadLeft fill with blanks up to n characters.
func PadRight(text string, n int) string { return text + Blanks(n-Length(text)) }

func PadLeft(text string, n int) string { return Blanks(n-Length(text)) + text }

// Blanks are n of them.
func Blanks(n int) string { return strings.Repeat(" ", max(0, n)) }

// Wrap breaks a sentence at blanks into lines of at most width characters; the second and later ones are indented.
// A word longer than a line is cut into pieces.
func Wrap(text string, width, indent int) []string {
	var lines []string
	line := ""
	for _, word := range splitLong(strings.Fields(text), width-indent) {
		switch {
		case line == "":
			line = word
		case Length(line)+1+Length(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = Blanks(indent) + word
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

// SideBySide puts two blocks of lines next to each other.
func SideBySide(left, right []string, gap int) []string {
	wide := 0
	for _, l := range left {
		wide = max(wide, Length(l))
	}
	lines := make([]string, 0, max(len(left), len(right)))
	for i := range max(len(left), len(right)) {
		l, r := lineAt(left, i), lineAt(right, i)
		lines = append(lines, strings.TrimRight(PadRight(l, wide+gap)+r, " "))
	}
	return lines
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// Grid aligns cells in columns two blanks apart; Right selects the columns that are aligned to the right.
type Grid struct {
	Right []bool
	Rows  [][]string
}

// Add appends a row.
func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, cells) }

func (g *Grid) widths() []int {
	var widths []int
	for _, row := range g.Rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Length(c))
		}
	}
	return widths
}

// Lines are the aligned rows.
func (g *Grid) Lines() []string {
	widths := g.widths()
	lines := make([]string, 0, len(g.Rows))
	for _, row := range g.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			if i < len(g.Right) && g.Right[i] {
				cells[i] = PadLeft(c, widths[i])
			} else {
				cells[i] = PadRight(c, widths[i])
			}
		}
		lines = append(lines, strings.TrimRight(strings.Join(cells, "  "), " "))
	}
	return lines
}

// Printable escapes characters that could move a terminal's cursor or reverse its text: names originate in packets and foreign files.
func Printable(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !unprintable(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) && r != '\u00a0' }

// Clock formats a duration in whole seconds: 7 s, 1:05 min, 2:03:04 h. Below 10 s a fraction is shown to a tenth.
func Clock(d time.Duration) string {
	if d < 10*time.Second && d%time.Second != 0 {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	sec := int(d.Seconds())
	switch {
	case sec < 60:
		return fmt.Sprintf("%d s", sec)
	case sec < 3600:
		return fmt.Sprintf("%d:%02d min", sec/60, sec%60)
	}
	return fmt.Sprintf("%d:%02d:%02d h", sec/3600, sec/60%60, sec%60)
}

// Columns sets cells of a width in as many columns as fit.
func Columns(cells []string, wide, width int) []string {
	perLine := max(1, width/max(1, wide))
	var lines []string
	for i := 0; i < len(cells); i += perLine {
		line := ""
		for _, c := range cells[i:min(i+perLine, len(cells))] {
			line += PadRight(c, wide)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// Clip cuts a text to n characters, the last of which is the mark.
func Clip(text string, n int, mark string) string {
	if Length(text) <= n {
		return text
	}
	if n < 1 {
		return ""
	}
	return string([]rune(text)[:n-1]) + mark
}
