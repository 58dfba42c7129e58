package figure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Table is a table of Markdown: the first column names a row, the others are numbers, aligned to the right.
type Table struct {
	Columns []string
	Rows    [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// String is the Markdown of the table.
func (t *Table) String() string {
	var b strings.Builder
	line := func(cells []string) {
		for i := range t.Columns {
			cell := ""
			if i < len(cells) {
				cell = strings.ReplaceAll(cells[i], "|", "\\|")
			}
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
	}
	line(t.Columns)
	for i := range t.Columns {
		if i == 0 {
			b.WriteString("|:---")
		} else {
			b.WriteString("|---:")
		}
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}

// Percent writes a share with as many decimals as make sense: 0.2 %, 8.3 %, 168 %; "-" when it is not known.
func Percent(x float64) string {
	switch p := 100 * x; {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return "-"
	case math.Abs(p) < 1:
		return fmt.Sprintf("%.2f %%", p)
	case math.Abs(p) < 20:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// Power writes a power of two as people do: 4096, and 1/512 below one. What is none is written as it is.
func Power(x float64) string {
	if x > 0 && x < 1 && math.Abs(1/x-math.Round(1/x)) < 1e-6/x {
		return "1/" + strconv.FormatFloat(math.Round(1/x), 'f', 0, 64)
	}
	return strconv.FormatFloat(math.Abs(x)*sign(x), 'g', 6, 64)
}

// sign of a number; of a negative zero 1, so that no mark is -0.
func sign(x float64) float64 {
	if x < 0 {
		return -1
	}
	return 1
}

// Factor writes how many times as much: 2.4x.
func Factor(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + "x"
}
