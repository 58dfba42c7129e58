package model

import (
	"cmp"
	"encoding/json"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Cells is a table of a report as displayed: non-empty columns, rows sorted and filtered.
type Cells struct {
	Heads   []string
	Columns []int // of the API's table
	Right   []bool
	Rows    []CellRow
	All     int // rows before the filter
}

// CellRow is a row: texts by column, and its depth in a tree of prefixes.
type CellRow struct {
	Texts []string
	Short []string // without intervals
	Depth int
	Row   int // of the API's table
}

// cellsOf formats a table. seconds is the window's length: counting columns are shown per second.
func cellsOf(t *api.Table, seconds float64, o Order, filter string) Cells {
	place, ends := map[string]int{}, map[string]bool{}
	for n, c := range t.Columns {
		place[c.Name] = n
	}
	for _, c := range t.Columns {
		for _, name := range []string{c.Low, c.High, c.Least, c.Most, c.Err} {
			if name != "" {
				ends[name] = true
			}
		}
	}
	out := Cells{All: len(t.Rows)}
	for n, c := range t.Columns {
		if !c.Hidden && !ends[c.Name] && !empty(t, n) {
			out.Columns, out.Right = append(out.Columns, n), append(out.Right, numeric(t, n))
			out.Heads = append(out.Heads, head(c, seconds))
		}
	}
	want := strings.ToLower(filter)
	for n := range t.Rows {
		r := CellRow{Row: n}
		found := want == ""
		for _, c := range out.Columns {
			text, short := cellText(t, n, c, place, seconds)
			found = found || contains(text, want)
			r.Texts, r.Short = append(r.Texts, text), append(r.Short, short)
		}
		if found {
			out.Rows = append(out.Rows, r)
		}
	}
	out.order(t, o)
	return out
}

// empty reports whether a text column has no text in any row: remarks are rare. Columns of numbers stay, since 0 is information.
func empty(t *api.Table, column int) bool {
	return len(t.Rows) > 0 && t.Columns[column].Unit == "" && !slices.ContainsFunc(t.Rows, func(row []json.RawMessage) bool {
		return string(row[column]) != `""` && string(row[column]) != "null"
	})
}

func numeric(t *api.Table, column int) bool {
	for _, row := range t.Rows {
		if len(row[column]) > 0 && row[column][0] != 'n' {
			return row[column][0] != '"'
		}
	}
	return false
}

// perSecond is the unit of a counting column per second; "" for others.
func perSecond(c api.Column, seconds float64) (unit report.Unit, factor float64) {
	switch {
	case !c.Rate || seconds <= 0:
		return "", 1
	case c.Unit == string(report.Bytes):
		return report.BitRate, 8 / seconds
	}
	return report.PerSecond, 1 / seconds
}

func head(c api.Column, seconds float64) string {
	name := Words(c.Name, c.Unit)
	if unit, _ := perSecond(c, seconds); unit == report.BitRate && name == "bytes" {
		return "bits"
	}
	return name
}

// Words makes a name readable: delay_ns becomes delay.
func Words(name, unit string) string {
	if unit == string(report.Nanosecond) {
		name = strings.TrimSuffix(name, "_ns")
	}
	return strings.NewReplacer("_", " ", ".", " ").Replace(name)
}

func cellText(t *api.Table, row, column int, place map[string]int, seconds float64) (text, short string) {
	c, cells := t.Columns[column], t.Rows[row]
	unit, factor := perSecond(c, seconds)
	if unit == "" {
		unit = report.Unit(c.Unit)
	}
	value := Number(cells[column])
	if math.IsNaN(value) {
		text = Text(cells[column], c.Unit)
		return text, text
	}
	at := func(name string) float64 {
		if n, ok := place[name]; ok && name != "" {
			return factor * Number(cells[n])
		}
		return math.NaN()
	}
	value *= factor
	low, high, promise := at(c.Low), at(c.High), report.Interval
	if math.IsNaN(low) || math.IsNaN(high) {
		low, high, promise = at(c.Least), at(c.Most), report.Bound
	}
	text, short = report.Enclosed(value, low, high, unit, promise), report.Human(value, unit)
	if err := at(c.Err); !math.IsNaN(err) && (math.IsNaN(low) || math.IsNaN(high)) {
		text += " ± " + report.Human(err, unit)
	}
	return text, short
}

func (c *Cells) order(t *api.Table, o Order) {
	if o.Column < 0 || o.Column >= len(c.Columns) {
		c.tree(t)
		return
	}
	at, right := c.Columns[o.Column], c.Right[o.Column]
	slices.SortStableFunc(c.Rows, func(a, b CellRow) int {
		n := strings.Compare(a.Texts[o.Column], b.Texts[o.Column])
		if right {
			n = -cmp.Compare(low(Number(t.Rows[a.Row][at])), low(Number(t.Rows[b.Row][at])))
		}
		if o.Reverse {
			n = -n
		}
		return n
	})
}

// tree indents prefixes below those that contain them.
func (c *Cells) tree(t *api.Table) {
	at := slices.IndexFunc(c.Columns, func(n int) bool { return t.Columns[n].Label && t.Columns[n].Name == "prefix" })
	if at < 0 {
		return
	}
	prefixes := map[int]netip.Prefix{}
	for _, r := range c.Rows {
		p, err := parsePrefix(t.Rows[r.Row][c.Columns[at]])
		if err != nil {
			return // not prefixes: unchanged
		}
		prefixes[r.Row] = p
	}
	slices.SortStableFunc(c.Rows, func(a, b CellRow) int {
		p, q := prefixes[a.Row], prefixes[b.Row]
		return cmp.Or(cmp.Compare(p.Addr().BitLen(), q.Addr().BitLen()), p.Addr().Compare(q.Addr()), cmp.Compare(p.Bits(), q.Bits()))
	})
	var open []netip.Prefix
	for n := range c.Rows {
		p := prefixes[c.Rows[n].Row]
		for len(open) > 0 && !(open[len(open)-1].Overlaps(p) && open[len(open)-1].Bits() <= p.Bits()) {
			open = open[:len(open)-1]
		}
		c.Rows[n].Depth = len(open)
		open = append(open, p)
	}
}

func parsePrefix(text json.RawMessage) (netip.Prefix, error) {
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return netip.Prefix{}, err
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(name)
	return p.Masked(), err
}

// label is the row's name in a field: the first of its label cells.
func label(t *api.Table, row int) string {
	for n, c := range t.Columns {
		var name string
		if c.Label && json.Unmarshal(t.Rows[row][n], &name) == nil {
			return name
		}
	}
	return ""
}
