package parquet

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// kind is the type of a column. Where windows differ, the larger one is taken.
type kind uint8

const (
	unknown kind = iota // only missing values so far
	truth
	moment  // time.Time
	integer // int64
	real    // float64
	text
)

// both is the type of a column that has values of two.
func both(a, b kind) kind {
	switch {
	case a == b || b == unknown:
		return a
	case a == unknown:
		return b
	case a >= integer && a <= real && b >= integer && b <= real:
		return real
	}
	return text
}

// cell is a value of a row; nil: missing.
type cell struct {
	name  string
	kind  kind
	value any
}

// row collects the cells of one row. A name that is taken already gets a prefix: the columns of a window come first.
type row struct {
	cells []cell
	taken map[string]bool
}

func (r *row) set(name string, k kind, value any) {
	name = strings.ReplaceAll(name, ".", "_") // engines take a dot for a member of a structure
	for r.taken[name] {
		name = "row_" + name
	}
	if r.taken == nil {
		r.taken = map[string]bool{}
	}
	r.taken[name] = true
	r.cells = append(r.cells, cell{name, k, value})
}

// add sets a value of a report: integers for what is counted, like in JSON.
func (r *row) add(name string, value any, unit report.Unit) {
	k, v := typed(value, unit)
	r.set(name, k, v)
}

func typed(value any, unit report.Unit) (kind, any) {
	whole := unit.Whole()
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return expected(unit), nil
	case reflect.Bool:
		return truth, v.Bool()
	case reflect.String:
		return text, v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return number(v.Int(), unit)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return real, float64(v.Uint())
		}
		return number(int64(v.Uint()), unit)
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		switch {
		case math.IsNaN(f) || math.IsInf(f, 0):
			return expected(unit), nil
		case whole && math.Abs(f) < math.MaxInt64:
			return integer, int64(math.Round(f))
		}
		return real, f
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return text, fmt.Sprint(value)
	}
	return text, string(encoded)
}

// number is an integer of a unit whose other values may have a fraction.
func number(n int64, unit report.Unit) (kind, any) {
	if expected(unit) == real {
		return real, float64(n)
	}
	return integer, n
}

// expected is the type that a unit implies.
func expected(unit report.Unit) kind {
	switch {
	case unit.Whole():
		return integer
	case unit == report.None:
		return unknown
	}
	return real
}

// dataset is a folder of files with the same columns.
type dataset struct{ algorithm, table string }

// Windows is the table with one row for each window.
const Windows = "windows"

// rows calls fn with each row of a window.
func rows(l report.Line, c report.Clock, cdf bool, fn func(dataset, row)) {
	w := head(l, c)
	counted(&w, l)
	body(&w, l.Report)
	fn(dataset{l.Algorithm, Windows}, w)
	for _, t := range l.Report.Tables {
		for n, cells := range t.Rows {
			r := head(l, c)
			r.set("rank", integer, int64(n+1))
			for i, col := range t.Columns {
				var v any
				if i < len(cells) {
					v = cells[i]
				}
				r.add(col.Name, v, col.Unit)
			}
			if n < len(t.Names) && len(t.Names[n]) > 0 {
				r.add("names", t.Names[n], report.None)
			}
			fn(dataset{l.Algorithm, t.Name}, r)
		}
	}
	if !cdf {
		return
	}
	for _, d := range l.Report.Distributions {
		for _, b := range d.Buckets {
			r := head(l, c)
			r.add("le", b.Upper, d.Unit)
			r.add("count", b.Cumulative, report.Count)
			fn(dataset{l.Algorithm, d.Name + "_cdf"}, r)
		}
	}
}

// head names the window.
func head(l report.Line, c report.Clock) (r row) {
	r.set("window_start", moment, at(l.Window.Start, c))
	r.set("window_end", moment, at(l.Window.End, c))
	r.set("instance", text, l.Instance)
	r.set("interface", text, l.Identity.Interface())
	r.set("vantage", text, l.Vantage)
	r.set("guest", text, l.Guest.String())
	return r
}

// at is a time of the packets' clock; nil if the wall clock time is not known.
func at(ns int64, c report.Clock) any {
	if c.Known(ns) {
		return time.Unix(0, ns+c.UnixOffsetNS).UTC()
	}
	return nil
}

// counted are the numbers that every algorithm has.
func counted(r *row, l report.Line) {
	for _, x := range []struct {
		name string
		n    uint64
	}{{"packets_seen", l.Packets.Seen}, {"packets_parsed", l.Packets.Parsed}, {"packets_used", l.Packets.Used}, {"packets_segments", l.Packets.Segments}, {"packets_bytes", l.Packets.Bytes}} {
		r.add(x.name, x.n, report.Count)
	}
	r.add("memory_register_bytes", l.Memory.RegisterBytes, report.Bytes)
	for _, name := range sorted(l.Lost) {
		r.add("lost."+name, l.Lost[name], report.Count)
	}
	r.set("window_ns", integer, l.Window.End-l.Window.Start)
	r.set("window_cut", truth, l.Window.Cut)
	r.set("window_stretched", truth, l.Window.Stretched)
	if h := l.Hosts; h != nil {
		r.add("hosts_known", h.Known, report.Count)
		r.add("hosts_merged", h.Merged, report.Count)
		r.add("hosts_missing", h.Missing, report.Count)
		r.set("hosts_missing_names", text, strings.Join(h.MissingNames, ","))
	}
}

// body are values and distributions, with the ends of their intervals beside them.
func body(r *row, b report.Body) {
	for _, v := range b.Values {
		r.add(v.Name, v.Value, v.Unit)
		if v.Low != nil || v.High != nil {
			low, high := v.Promise.Suffixes()
			r.add(v.Name+low, v.Low, v.Unit)
			r.add(v.Name+high, v.High, v.Unit)
		}
	}
	for _, d := range b.Distributions {
		distribution(r, d)
	}
}

func distribution(r *row, d report.Distribution) {
	set := func(name string, value float64, known bool, unit report.Unit) {
		if !known {
			value = math.NaN()
		}
		r.add(d.Name+"_"+name, value, unit)
	}
	low, high, ok := d.CountInterval()
	below, above := d.CountPromise.Suffixes()
	set("count", d.Count, true, report.Count)
	set("count"+below, low, ok, report.Count)
	set("count"+above, high, ok, report.Count)
	set("mean", d.Mean, d.Count > 0, d.Unit)
	set("sum", d.Sum, true, d.Unit)
	for _, q := range d.Quantiles {
		below, above = q.Promise.Suffixes()
		set(q.Name, q.Value, q.Defined, d.Unit)
		set(q.Name+below, q.Low, q.Bounded(), d.Unit)
		set(q.Name+above, q.High, q.Bounded(), d.Unit)
	}
}
