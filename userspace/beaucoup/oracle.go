package beaucoup

import (
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Oracle implements algo.OracleProvider.
func (i *instance) Oracle() algo.Oracle {
	i.judged = true
	return &oracle{instance: i, keys: map[place]*history{}}
}

// oracle stores every distinct attribute of every key. A key's window starts with its first packet, and the next one with the
// first packet after its end.
type oracle struct {
	instance *instance
	keys     map[place]*history
	crossed  []crossing
	number   uint64
	program  *compile.Program // that texts are of
	texts    []string
}

// text of a query, cached for the program.
func (o *oracle) text(n int) string {
	if p := o.instance.program; p != o.program {
		o.program, o.texts = p, make([]string, len(p.Queries))
		for k := range p.Queries {
			o.texts[k] = p.Queries[k].Text()
		}
	}
	return o.texts[n]
}

type place struct {
	query string
	key   compile.Words
}

// history is a key's windows, oldest first: those that alerts of this report may refer to.
type history struct {
	width   int64 // of a window, ns
	windows []window
}

type window struct {
	start int64
	seen  map[compile.Words]stay
}

// stay is the time when an attribute was first and last seen in a window, ns.
type stay struct{ first, last int64 }

type crossing struct {
	place
	text string
	time int64
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) {
	o.number++
	w, valid := compile.WordsOf(p, o.number, o.instance.seed), compile.ValidOf(p)
	for n := range o.instance.program.Queries {
		q := &o.instance.program.Queries[n].Query
		if need := q.Attribute.Valid | q.Key.Valid | q.Filter.Valid; valid&need != need || w[compile.WordPorts]&q.Filter.Mask != q.Filter.Value {
			continue
		}
		at := place{o.text(n), w.And(&q.Key.Mask)}
		h := o.keys[at]
		if h == nil {
			h = &history{width: int64(q.Window)}
			o.keys[at] = h
		}
		if h.add(w.And(&q.Attribute.Mask), p.Time) == q.Threshold+1 {
			o.crossed = append(o.crossed, crossing{at, q.Key.Name(at.key, o.instance.names), p.Time})
		}
	}
}

// add an attribute; returns the number in the window, or 0 if it is not new.
func (h *history) add(attribute compile.Words, now int64) int {
	n := len(h.windows)
	if n == 0 || now-h.windows[n-1].start > h.width {
		h.windows = append(h.windows, window{start: now, seen: map[compile.Words]stay{}})
		n++
	}
	seen := h.windows[n-1].seen
	s, known := seen[attribute]
	if !known {
		s.first = now
	}
	s.last = now
	seen[attribute] = s
	if known {
		return 0
	}
	return len(seen)
}

// at is the number of distinct attributes in the window that contains a time, or since age before that time if that is earlier: a
// collector's window begins with its first coupon, so the two windows differ if a key is active for longer than one.
func (h *history) at(time, age int64) int { return h.until(time, age, time) }

// until is the same up to another time.
func (h *history) until(contained, age, time int64) int {
	if h == nil {
		return 0
	}
	n := len(h.windows) - 1
	for n > 0 && h.windows[n].start > contained {
		n--
	}
	from := min(h.windows[n].start, contained-age)
	for n = len(h.windows) - 1; n > 0 && h.windows[n].start > time; {
		n--
	}
	found := map[compile.Words]struct{}{}
	for ; n >= 0 && h.windows[n].start+h.width >= from; n-- {
		for attribute, s := range h.windows[n].seen {
			if s.first <= time && s.last >= from {
				found[attribute] = struct{}{}
			}
		}
	}
	return len(found)
}

// forget removes windows that no alert after a time can refer to.
func (o *oracle) forget(now int64) {
	for at, h := range o.keys {
		keep := slices.IndexFunc(h.windows, func(w window) bool { return now-w.start <= 2*h.width })
		if keep < 0 {
			delete(o.keys, at)
			continue
		}
		h.windows = slices.Delete(h.windows, 0, keep)
	}
}

// Window implements algo.Oracle. It compares the alerts of the same window with the truth.
func (o *oracle) Window(w report.Window) report.Body {
	defer o.forget(w.End)
	type tally struct {
		keys, alerts, unconfirmed int
		abs, signed               float64
	}
	byQuery := map[string]*tally{}
	of := func(name string) *tally {
		if byQuery[name] == nil {
			byQuery[name] = &tally{}
		}
		return byQuery[name]
	}
	alerts := report.Table{Name: "alerts", Title: "Alerts", Whole: true, Limit: 2 * o.instance.top, Columns: alertColumns()}
	counts, totals := map[place]int{}, map[place]any{}
	var all tally
	for n := range o.instance.last {
		a := &o.instance.last[n]
		at := place{a.Query.Text(), a.Key}
		count := o.keys[at].at(a.Time, a.Age)
		counts[at] = count
		if !math.IsNaN(a.TotalLow) {
			totals[at] = int64(o.keys[at].until(a.Since, 0, a.Until))
		}
		t, off := of(a.Query.Name), float64(count)/float64(a.Query.Threshold)-1
		for _, t := range []*tally{t, &all} {
			t.alerts++
			t.abs += math.Abs(off)
			t.signed += off
			if float64(count) < a.Least {
				t.unconfirmed++
			}
		}
	}
	listed := map[place]bool{}
	for _, c := range o.crossed {
		if listed[c.place] {
			continue // again, in a later window of the key
		}
		listed[c.place] = true
		name := o.instance.nameOf(c.query)
		of(name).keys++
		all.keys++
		count, ok := counts[c.place]
		if !ok {
			count = o.keys[c.place].at(c.time, 0)
		}
		alerts.Rows = append(alerts.Rows, []any{name, c.text, int64(count), o.instance.when(c.time, 0), nil, nil, c.time, nil,
			totals[c.place], nil, nil, nil, nil, uint64(1)})
	}
	for n := range o.instance.last { // alerts of keys that have less, with what they have
		a := &o.instance.last[n]
		if at := (place{a.Query.Text(), a.Key}); !listed[at] {
			alerts.Rows = append(alerts.Rows, []any{a.Query.Name, a.Text, int64(counts[at]), o.instance.when(a.Time, 0), nil, nil, a.Time, a.Age,
				totals[at], nil, nil, a.Until, nil, uint64(a.Times)})
		}
	}
	o.crossed = nil
	table := report.Table{Name: "queries", Title: "Queries", Whole: true, Limit: compile.MaxQueries, Columns: []report.Column{
		{Name: "query", Label: true},
		{Name: "keys", Unit: report.Count, Help: "keys with more than the threshold"},
		{Name: "alerts_judged", Unit: report.Count, Help: "alerts of the window"},
		{Name: "mean_relative_error", Unit: report.Ratio, Help: "mean of |true count at the alert - threshold| / threshold"},
		{Name: "bias", Unit: report.Ratio, Help: "the same with its sign"},
		{Name: "unconfirmed", Unit: report.Count, Help: "alerts whose true count is less than 9,999 of 10,000 such alerts have"},
	}}
	for n := range o.instance.program.Queries {
		name := o.instance.program.Queries[n].Name
		t := of(name)
		table.Rows = append(table.Rows, []any{name, int64(t.keys), int64(t.alerts), ratio(t.abs, float64(t.alerts)),
			ratio(t.signed, float64(t.alerts)), int64(t.unconfirmed)})
	}
	return report.Body{Values: []report.Value{
		gauge("keys", all.keys, report.Count, "keys with more than a threshold"),
		gauge("alerts_judged", all.alerts, report.Count, "alerts of the window"),
		gauge("mean_relative_error", ratio(all.abs, float64(all.alerts)), report.Ratio, "of the true count at the alert against the threshold"),
		gauge("bias", ratio(all.signed, float64(all.alerts)), report.Ratio, "the same with its sign"),
		gauge("unconfirmed", all.unconfirmed, report.Count, "alerts whose true count is less than 9,999 of 10,000 such alerts have"),
	}, Tables: append([]report.Table{alerts, table}, o.earlier()...)}
}

// earlier are the totals of alerts of earlier windows.
func (o *oracle) earlier() []report.Table {
	e := o.instance.judging
	if e == nil || len(e.earlier) == 0 {
		return nil
	}
	t := e.totalTable()
	for n, f := range e.earlier[:min(len(e.earlier), e.top)] {
		row := t.Rows[n]
		row[2], row[3], row[4], row[7] = int64(o.keys[place{f.query.Text(), f.key}].until(f.start, 0, f.until)), nil, nil, nil
	}
	return []report.Table{t}
}

func (i *instance) nameOf(text string) string {
	if c := i.program.Find(text); c != nil {
		return c.Name
	}
	if c := i.previous.Find(text); c != nil {
		return c.Name
	}
	return text
}
