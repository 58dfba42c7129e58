package report

import (
	"math"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/plot"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// historyWindows is how many windows a screen stores, and historyRows the number of rows whose history it draws.
const (
	historyWindows = 200
	historyRows    = 4
)

// history holds the past values of columns with Column.History, by the row's name. A row that a window does not list is removed.
type history struct {
	rows map[string][][]float64 // of each column, the latest window last
	list []historyRow
}

// historyRow is a row of the latest window.
type historyRow struct {
	name    string
	columns []Column
	past    [][]float64
}

// add appends a window.
func (h *history) add(b *Body) {
	before := h.rows
	h.rows, h.list = map[string][][]float64{}, nil
	for _, t := range b.Tables {
		columns, places := t.histories()
		if len(columns) == 0 {
			continue
		}
		for _, row := range t.Rows {
			name := t.rowName(row)
			past := before[t.Name+"\x00"+name]
			if past == nil {
				past = make([][]float64, len(columns))
			}
			for i, place := range places {
				past[i] = append(past[i], number(row[place]))
				past[i] = past[i][max(0, len(past[i])-historyWindows):]
			}
			h.rows[t.Name+"\x00"+name] = past
			h.list = append(h.list, historyRow{name, columns, past})
		}
	}
}

func (t *Table) histories() (columns []Column, places []int) {
	for i, c := range t.Columns {
		if c.History {
			columns, places = append(columns, c), append(places, i)
		}
	}
	return columns, places
}

func (t *Table) rowName(row []any) string {
	var names []string
	for i, c := range t.Columns {
		if text, ok := row[i].(string); ok && c.Label {
			names = append(names, text)
		}
	}
	return strings.Join(names, " ")
}

// number of a cell; NaN: none.
func number(cell any) float64 {
	if f, ok := Number(cell); ok {
		return f
	}
	return math.NaN()
}

// lines draw the history of the first rows, one character per window, all rows of a column on one scale. There are none before
// the second window.
func (h *history) lines(style Style) []string {
	const fewest, gap, scale = 16, 2, 15
	var g typeset.Grid
	wide := 0
	for _, r := range h.list[:min(len(h.list), historyRows)] {
		for _, c := range r.columns {
			wide = max(wide, typeset.Length(typeset.Printable(r.name))+typeset.Length(plainWords(c.Name, c.Unit))+4*gap+scale)
		}
	}
	for _, r := range h.list[:min(len(h.list), historyRows)] {
		if len(r.past[0]) < 2 {
			continue
		}
		most := 0.
		for _, past := range r.past {
			for _, x := range past {
				if x > most && !math.IsInf(x, 0) {
					most = x
				}
			}
		}
		name := typeset.Printable(r.name)
		for i, c := range r.columns {
			g.Add(name, plainWords(c.Name, c.Unit), plot.Sparks(style.Unicode, r.past[i], most, max(fewest, style.width()-wide)), "of "+Human(most, c.Unit))
			name = ""
		}
	}
	lines := g.Lines()
	for i := range lines {
		lines[i] = style.clip("  "+lines[i], style.width())
	}
	if len(lines) > 0 {
		lines = append([]string{"history, one character per window"}, lines...)
	}
	return lines
}
