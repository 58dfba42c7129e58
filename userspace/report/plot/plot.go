// Package plot draws a cumulative distribution in characters.
package plot

import (
	"math"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// plot draws a CDF in characters: the estimate as an area, the truth (when there is one) as dots on it. The x axis
// is logarithmic.
type plot struct {
	options       Options
	columns, rows int
	low, high     float64 // ends of the x axis
	est           Curve
	truth         Curve
}

// axisWidth is the width of "100 % |" on the left.
const axisWidth = 7

// Curve is a cumulative distribution.
type Curve interface {
	Total() float64
	Share(x float64) float64 // of the values that are at most x
	At(share float64) float64
}

// Options of a plot.
type Options struct {
	Unicode     bool
	Width, Rows int                    // the plot has Width x (Rows + 2) characters
	Tick        func(x float64) string // writes a value under the axis
}

// Lines draws a curve, and a truth (nil: none) on it; nil when there is nothing to draw.
func Lines(o Options, est, truth Curve) []string {
	p := plot{options: o, columns: o.Width - axisWidth, rows: o.Rows, est: est, truth: truth}
	if p.columns < 12 || !(est.Total() > 0) {
		return nil
	}
	p.low, p.high = p.span()
	if !(p.low > 0) || math.IsInf(p.high, 0) || math.IsNaN(p.high) {
		return nil
	}
	return p.lines()
}

func (p plot) glyph(unicode, ascii string) string {
	if p.options.Unicode {
		return unicode
	}
	return ascii
}

// span chooses the ends of the x axis, which omits half a per cent of the values at each end.
func (p plot) span() (low, high float64) {
	low, high = p.est.At(0.005), p.est.At(0.995)
	if p.truth != nil && p.truth.Total() > 0 {
		low, high = min(low, p.truth.At(0.005)), max(high, p.truth.At(0.995))
	}
	if low <= 0 {
		low = min(1, high/1000)
	}
	if high < 1.5*low {
		low, high = low/1.5, high*1.5
	}
	return low, high
}

// at returns the value in the middle of a column.
func (p plot) at(column int) float64 {
	return p.low * math.Pow(p.high/p.low, (float64(column)+0.5)/float64(p.columns))
}

// column is the inverse of at.
func (p plot) column(x float64) int {
	return int(math.Log(x/p.low) / math.Log(p.high/p.low) * float64(p.columns))
}

func (p plot) lines() []string {
	lines := make([]string, 0, p.rows+2)
	for row := range p.rows {
		lines = append(lines, p.label(row)+p.row(row))
	}
	corner := p.glyph("└", "+")
	lines = append(lines, typeset.PadLeft("0 % ", axisWidth-1)+corner+strings.Repeat(p.glyph("─", "-"), p.columns))
	return append(lines, strings.TrimRight(typeset.Blanks(axisWidth)+p.ticks(), " "))
}

func (p plot) label(row int) string {
	text := ""
	switch row {
	case 0:
		text = "100 % "
	case p.rows / 2:
		if p.rows%2 == 0 {
			text = "50 % "
		}
	}
	return typeset.PadLeft(text, axisWidth-1) + p.glyph("│", "|")
}

var (
	unicodeFill = []rune(" ▁▂▃▄▅▆▇█")
	asciiFill   = []rune("  ...:::#")
)

// row draws one line of the area, the top one being row 0.
func (p plot) row(row int) string {
	var b strings.Builder
	for column := range p.columns {
		b.WriteRune(p.cell(row, column))
	}
	return b.String()
}

func (p plot) cell(row, column int) rune {
	x := p.at(column)
	if p.truth != nil && p.truth.Total() > 0 && p.rowOf(p.truth.Share(x)) == row {
		return []rune(p.glyph("●", "o"))[0]
	}
	below := float64(p.rows - 1 - row)
	eighths := int(math.Round(8 * (p.est.Share(x)*float64(p.rows) - below)))
	eighths = min(8, max(0, eighths))
	if p.options.Unicode {
		return unicodeFill[eighths]
	}
	return asciiFill[eighths]
}

// rowOf returns the line in which a share lies.
func (p plot) rowOf(share float64) int {
	return p.rows - 1 - min(p.rows-1, int(share*float64(p.rows)))
}

// ticks writes the values under the axis where they do not touch.
func (p plot) ticks() string {
	line := []rune(typeset.Blanks(p.columns))
	end := 0
	for _, x := range tickValues(p.low, p.high, max(3, p.columns/12)) {
		text := p.options.Tick(x)
		start := p.column(x) - typeset.Length(text)/2
		if start < end || start+typeset.Length(text) > len(line) {
			continue
		}
		copy(line[start:], []rune(text))
		end = start + typeset.Length(text) + 1
	}
	return string(line)
}

// tickSteps are the digits at which an axis may be marked, coarse ones first.
var tickSteps = [][]float64{{1}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 6, 8}, {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7, 8, 9}}

// tickValues chooses the coarsest steps that mark enough values, or the finest there are.
func tickValues(low, high float64, enough int) (ticks []float64) {
	for _, steps := range tickSteps {
		if ticks = multiples(steps, low, high); len(ticks) >= enough {
			break
		}
	}
	return ticks
}

func multiples(steps []float64, low, high float64) (values []float64) {
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for _, s := range steps {
			if x := s * decade; x >= low && x <= high {
				values = append(values, x)
			}
		}
	}
	return values
}

// Sparks draws one character for each of the latest windows: its value relative to the largest. A window without a value is
// blank.
func Sparks(unicode bool, past []float64, most float64, width int) string {
	levels := []rune("_.-=+*%#")
	if unicode {
		levels = []rune("▁▂▃▄▅▆▇█")
	}
	var b strings.Builder
	for _, x := range past[max(0, len(past)-width):] {
		switch {
		case math.IsNaN(x):
			b.WriteByte(' ')
		case most <= 0:
			b.WriteRune(levels[0])
		default:
			b.WriteRune(levels[min(len(levels)-1, int(min(1, max(0, x/most))*float64(len(levels))))])
		}
	}
	return b.String()
}

// Bar draws the elapsed share of a span.
func Bar(unicode bool, over float64, width int) string {
	full := int(float64(width) * min(1, max(0, over)))
	done, left := "#", "."
	if unicode {
		done, left = "█", "░"
	}
	return "[" + strings.Repeat(done, full) + strings.Repeat(left, width-full) + "]"
}
