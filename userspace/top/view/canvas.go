// Package view draws the state of `xdpmon top` on a grid of cells. It does not use a terminal: the caller copies the cells.
package view

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
	"golang.org/x/text/unicode/bidi"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Style is the meaning of a cell's text. On a terminal without colours it is bold, reverse or underlined.
type Style uint8

// Styles.
const (
	Normal Style = iota
	Soft         // less important
	Strong
	Title // bars at top and bottom
	Head  // header of a column
	Good
	Info
	Warning
	Critical
	Spark
)

// Cell is a character with its style. A cell covered by a wide character has the rune 0.
type Cell struct {
	Rune     rune
	Style    Style
	Selected bool
}

// Canvas is a grid of cells.
type Canvas struct {
	Width, Height int
	cells         []Cell
}

// NewCanvas is an empty canvas.
func NewCanvas(width, height int) *Canvas {
	c := &Canvas{Width: max(1, width), Height: max(1, height)}
	c.cells = make([]Cell, c.Width*c.Height)
	for n := range c.cells {
		c.cells[n].Rune = ' '
	}
	return c
}

// At is a cell.
func (c *Canvas) At(x, y int) Cell { return c.cells[y*c.Width+x] }

// Put writes spans on a line, clipped, and returns the column after them.
func (c *Canvas) Put(x, y int, line ...Span) int {
	if y < 0 || y >= c.Height {
		return x
	}
	for _, s := range line {
		for _, r := range Safe(s.Text) {
			w := runeWidth(r)
			if x+w > c.Width {
				return c.Width
			}
			c.cells[y*c.Width+x] = Cell{Rune: r, Style: s.Style}
			if w == 2 {
				c.cells[y*c.Width+x+1] = Cell{Style: s.Style}
			}
			x += w
		}
	}
	return x
}

// Select highlights a line.
func (c *Canvas) Select(y int) {
	for x := range c.Width {
		if y >= 0 && y < c.Height {
			c.cells[y*c.Width+x].Selected = true
		}
	}
}

// Fill sets the style of a whole line.
func (c *Canvas) Fill(y int, s Style) {
	for x := range c.Width {
		c.cells[y*c.Width+x].Style = s
	}
}

// Span is text of one style.
type Span struct {
	Text  string
	Style Style
}

// Line is a list of spans.
type Line []Span

func line(text string, s Style) Line { return Line{{text, s}} }

func (l Line) width() int {
	n := 0
	for _, s := range l {
		n += Width(s.Text)
	}
	return n
}

var measure = runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	return measure.RuneWidth(r)
}

// Width is the number of cells of a text.
func Width(text string) int {
	n := 0
	for _, r := range Safe(text) {
		n += runeWidth(r)
	}
	return n
}

// Safe escapes control characters, combining marks and right-to-left letters, which would change the layout of columns: names are from packets and from other
// people's files.
func Safe(text string) string {
	if plainASCII(text) {
		return text
	}
	text = typeset.Printable(text)
	if strings.IndexFunc(text, unsteady) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unsteady(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func plainASCII(text string) bool {
	for n := range len(text) {
		if text[n] < ' ' || text[n] > '~' {
			return false
		}
	}
	return true
}

func unsteady(r rune) bool {
	if r < 0x300 {
		return false
	}
	if unicode.Is(unicode.M, r) || measure.RuneWidth(r) < 1 {
		return true
	}
	p, _ := bidi.LookupRune(r)
	return p.Class() == bidi.R || p.Class() == bidi.AL
}

// clip cuts a text to a width; the last cell is then the mark.
func clip(text string, width int, mark string) string {
	text = Safe(text)
	if Width(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	n, out := 0, ""
	for _, r := range text {
		if n+runeWidth(r) > width-1 {
			break
		}
		n += runeWidth(r)
		out += string(r)
	}
	return out + mark
}

func padRight(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-Width(text)))
}

func padLeft(text string, width int) string {
	return strings.Repeat(" ", max(0, width-Width(text))) + text
}

// wrap breaks a text at blanks; continuation lines are indented.
func wrap(text string, width, indent int, s Style) (out []Line) {
	for _, l := range typeset.Wrap(Safe(text), max(8, width), indent) {
		out = append(out, line(l, s))
	}
	return out
}
