// Package model is the state of `xdpmon top`, without its drawing: findings, instances and their windows as returned by the API, selection, sorting,
// filters, and the effect of keys. It knows neither terminal nor network.
package model

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Estimate is a number with the ends of its interval; NaN: there is none.
type Estimate struct {
	Value, Low, High float64
	Bound            bool // the ends are bounds, not a confidence interval
}

// None is a missing estimate.
func None() Estimate { return Estimate{math.NaN(), math.NaN(), math.NaN(), false} }

// Enclosed reports whether both ends are known.
func (e Estimate) Enclosed() bool { return e.Low == e.Low && e.High == e.High }

// Row is an instance in the overview.
type Row struct {
	Key, Guest, Vantage string
	Interfaces          []string
	Algorithms          []string
	WindowNS            int64
	End                 int64 // of its latest window, ms of Unix time
	Packets, Bits       float64
	P50, P99            Estimate
	Delay               string // title of the delay
	Loss, Queue         float64
	Unmeasured          uint64 // events lost by the measurement
	Known, Merged       int    // hosts, at a coordinator
	Missing             []string
	Rates               []float64 // packets per second, the latest last
	main                *api.Measuring
}

// Place is where it measures: interfaces and their guests.
func (r *Row) Place() string {
	text := strings.Join(r.Interfaces, ",")
	if r.Guest != "" {
		text += " (" + r.Guest + ")"
	}
	return text
}

// rowOf is the overview of an instance now.
func rowOf(i *api.Instance) *Row {
	r := &Row{Key: i.Key, Guest: i.Guest, Vantage: i.Vantage, Interfaces: i.Interfaces, WindowNS: i.WindowNS, P50: None(), P99: None(), Loss: math.NaN(), Queue: math.NaN()}
	for n := range i.Algorithms {
		a := &i.Algorithms[n]
		r.Algorithms = append(r.Algorithms, a.Name)
		r.Unmeasured += a.Lost
		r.End = max(r.End, a.Window.EndMS)
		if a.Loss != nil && r.Loss != r.Loss {
			r.Loss = a.Loss.Share
		}
		if a.Queue != nil && r.Queue != r.Queue {
			r.Queue = a.Queue.Value
		}
		if h := a.Hosts; h != nil {
			r.Known, r.Merged, r.Missing = h.Known, h.Merged, h.Missing
		}
		if r.main == nil || r.main.Delay == nil && a.Delay != nil {
			r.main = a
		}
	}
	if r.main == nil {
		return r
	}
	r.Packets, r.Bits = rates(r.main.Seen, r.main.Bytes, r.main.Window)
	if d := r.main.Delay; d != nil {
		r.Delay = d.Title
		for _, q := range d.Of {
			switch q.Name {
			case "p50":
				r.P50 = estimateOf(q)
			case "p99":
				r.P99 = estimateOf(q)
			}
		}
	}
	return r
}

func rates(seen, bytes uint64, w api.Window) (packets, bits float64) {
	seconds := float64(w.EndMS-w.StartMS) / 1e3
	if seconds <= 0 {
		return math.NaN(), math.NaN()
	}
	return float64(seen) / seconds, 8 * float64(bytes) / seconds
}

func estimateOf(q api.Quantile) Estimate {
	return Estimate{Number(q.Value), Number(q.Low), Number(q.High), q.Promise == "bound"}
}

// Number parses a JSON number; NaN if it is none.
func Number(text json.RawMessage) float64 {
	var f float64
	if len(text) == 0 || text[0] == 'n' || json.Unmarshal(text, &f) != nil {
		return math.NaN()
	}
	return f
}

// Text formats a JSON value with its unit.
func Text(text json.RawMessage, unit string) string {
	if len(text) == 0 {
		return "-"
	}
	var v any
	if json.Unmarshal(text, &v) != nil {
		return "-"
	}
	return report.Human(v, report.Unit(unit))
}

// pastFields are the fields of an instance's overview at an earlier time, by algorithm.
type pastFields struct {
	algorithm string
	fields    []string
	apply     func(r *Row, row []json.RawMessage)
}

// fieldsOf lists the fields needed to show an instance at an earlier time; onlyRate: only its rate.
func fieldsOf(i *api.Instance, onlyRate bool) (all []pastFields) {
	main := rowOf(i).main
	for n := range i.Algorithms {
		a := &i.Algorithms[n]
		f := pastFields{algorithm: a.Name}
		var set []func(*Row, []json.RawMessage)
		ask := func(names ...string) int {
			f.fields = append(f.fields, names...)
			return 1 + len(f.fields) - len(names) + 1
		}
		if a.Name == main.Name {
			at := ask("packets.seen", "packets.bytes")
			set = append(set, func(r *Row, row []json.RawMessage) {
				w := api.Window{StartMS: int64(Number(row[0])), EndMS: int64(Number(row[1]))}
				r.Packets, r.Bits = rates(uint64(Number(row[at])), uint64(Number(row[at+1])), w)
				r.End = w.EndMS
			})
		}
		if a.Name == main.Name && a.Delay != nil && !onlyRate {
			for n, name := range []string{"p50", "p99"} {
				path := a.Delay.Field + "." + name
				at := ask(path, path+"_low", path+"_high", path+"_at_least", path+"_at_most")
				set = append(set, func(r *Row, row []json.RawMessage) {
					e := Estimate{Number(row[at]), Number(row[at+1]), Number(row[at+2]), false}
					if !e.Enclosed() {
						e.Low, e.High, e.Bound = Number(row[at+3]), Number(row[at+4]), true
					}
					*[]*Estimate{&r.P50, &r.P99}[n] = e
				})
			}
		}
		if a.Loss != nil && !onlyRate {
			at, back := ask(a.Loss.Lost, a.Loss.Among), 0
			if a.Loss.Back != "" {
				back = ask(a.Loss.Back)
			}
			set = append(set, func(r *Row, row []json.RawMessage) {
				lost := Number(row[at])
				if back > 0 {
					lost -= Number(row[back])
				}
				r.Loss = max(0, lost) / Number(row[at+1])
			})
		}
		if a.Queue != nil && !onlyRate {
			at := ask(a.Queue.Field)
			set = append(set, func(r *Row, row []json.RawMessage) { r.Queue = Number(row[at]) })
		}
		if len(f.fields) > 0 {
			f.apply = func(r *Row, row []json.RawMessage) {
				for _, one := range set {
					one(r, row)
				}
			}
			all = append(all, f)
		}
	}
	return all
}

// column is a sort order of the overview.
type column struct {
	name string
	by   func(a, b *Row) int
	down bool // largest first
}

func byNumber(of func(*Row) float64) func(a, b *Row) int {
	return func(a, b *Row) int { return cmp.Compare(low(of(a)), low(of(b))) }
}

// low sorts unknown values below all numbers.
func low(x float64) float64 {
	if math.IsNaN(x) {
		return math.Inf(-1)
	}
	return x
}

// columns of the overview, in their order; the API sorts by name.
var columns = []column{
	{"name", func(a, b *Row) int { return strings.Compare(a.Key, b.Key) }, false},
	{"rate", byNumber(func(r *Row) float64 { return r.Packets }), true},
	{"bits", byNumber(func(r *Row) float64 { return r.Bits }), true},
	{"p50", byNumber(func(r *Row) float64 { return r.P50.Value }), true},
	{"p99", byNumber(func(r *Row) float64 { return r.P99.Value }), true},
	{"loss", byNumber(func(r *Row) float64 { return r.Loss }), true},
	{"queue", byNumber(func(r *Row) float64 { return r.Queue }), true},
}

// Columns are the names of the sort orders of the overview.
func Columns() []string {
	names := make([]string, len(columns))
	for n, c := range columns {
		names[n] = c.name
	}
	return names
}

// Order is the sort order of rows: by a column (an index), in its natural direction or the reverse.
type Order struct {
	Column  int // -1: unsorted
	Reverse bool
}

func sorted(rows []*Row, o Order) []*Row {
	if o.Column < 0 || o.Column >= len(columns) {
		return rows
	}
	c := columns[o.Column]
	out := slices.Clone(rows)
	slices.SortStableFunc(out, func(a, b *Row) int {
		n := c.by(a, b)
		if c.down != o.Reverse {
			n = -n
		}
		return n
	})
	return out
}

// activeAt reports whether a finding was active at a time (ns of Unix time; 0: now).
func activeAt(f *finding.Finding, at int64) bool {
	if at == 0 {
		return f.Until == 0 && f.State != finding.Ends
	}
	return f.Since < at && (f.Until == 0 || f.Until >= at)
}

// MS converts a time of the API.
func MS(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func contains(text, want string) bool { return strings.Contains(strings.ToLower(text), want) }
