package report

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
)

// MarshalJSON writes the line as docs/output.md describes it. Its field names are a stable interface.
func (l Line) MarshalJSON() ([]byte, error) { return l.object(layout{}).MarshalJSON() }

// layout selects optional parts of a line.
type layout struct {
	clock *Clock // adds the window's wall clock time; nil: not known
	cdf   bool   // adds the steps of distributions: most of a line's bytes, and rarely needed
	truth bool   // the body is a truth: exact, without intervals
}

func (l Line) object(with layout) *ordered.Object {
	o := ordered.New()
	l.head(o, with)
	l.content(o, with)
	return o
}

// head sets what differs between windows with the same content.
func (l Line) head(o *ordered.Object, with layout) {
	o.Set("algorithm", l.Algorithm)
	l.fields(o)
	o.Set("window", l.Window.object(with.clock))
	if l.Hosts != nil {
		o.Set("hosts", l.Hosts.object())
	}
}

// content sets the rest, which does not depend on the clock.
func (l Line) content(o *ordered.Object, with layout) {
	exact := with
	exact.truth = true
	o.Set("packets", l.Packets.object())
	o.Set("memory", l.Memory.object())
	o.Set("lost", sortedObject(l.Lost))
	o.Set("report", l.Report.object(with))
	if l.Truth != nil {
		o.Set("truth", l.Truth.object(exact))
	}
	if l.Error != nil {
		o.Set("error", l.Error.object(exact))
	}
}

// MarshalJSON writes only the body, as under "report".
func (b Body) MarshalJSON() ([]byte, error) { return b.object(layout{}).MarshalJSON() }

func (w Window) object(clock *Clock) *ordered.Object {
	o := ordered.New()
	o.Set("start", w.Start)
	o.Set("end", w.End)
	if clock != nil {
		o.Set("start_time", clock.utc(w.Start))
		o.Set("end_time", clock.utc(w.End))
	}
	o.Set("number", w.Number)
	o.Set("last", w.Last)
	o.Set("stretched", w.Stretched)
	o.Set("cut", w.Cut)
	return o
}

func (p Packets) object() *ordered.Object {
	o := ordered.New()
	o.Set("seen", p.Seen)
	o.Set("segments", p.Segments)
	o.Set("parsed", p.Parsed)
	if p.UsedSegments {
		o.Set("used_segments", p.Used)
	} else {
		o.Set("used", p.Used)
	}
	o.Set("bytes", p.Bytes)
	o.Set("unparsed", sortedObject(p.Reasons))
	if p.Verdicts != nil {
		o.Set("verdicts", p.verdicts())
	}
	if p.Queue != nil {
		o.Set("queue", p.Queue.object())
	}
	return o
}

func (p Packets) verdicts() *ordered.Object {
	o := ordered.New()
	o.Set("passed", p.Passed())
	o.Set("dropped", p.Verdicts.Dropped)
	o.Set("dropped_bytes", p.Verdicts.DroppedBytes)
	o.Set("marked", p.Verdicts.Marked)
	o.Set("marked_before", p.Verdicts.MarkedBefore)
	o.Set("unmarkable", p.Verdicts.Unmarkable)
	o.Set("steered", p.Verdicts.Steered)
	return o
}

func (q *Queue) object() *ordered.Object {
	o := ordered.New()
	o.Set("carried", q.Carried)
	o.Set("carried_bytes", q.CarriedBytes)
	o.Set("sent", q.Sent)
	o.Set("sent_bytes", q.SentBytes)
	o.Set("dropped", q.Dropped)
	o.Set("dropped_bytes", q.DroppedBytes)
	o.Set("queued", q.Queued)
	o.Set("missed", q.Missed)
	o.Set("bare", q.Bare)
	o.Set("foreign", q.Foreign)
	o.Set("stale", q.Stale)
	o.Set("unparsed", q.Unparsed)
	return o
}

func (m Memory) object() *ordered.Object {
	o := ordered.New()
	o.Set("register_bytes", m.RegisterBytes)
	o.Set("kernel_bytes", m.KernelBytes)
	return o
}

func (b Body) object(with layout) *ordered.Object {
	o := ordered.New()
	for _, v := range b.Values {
		v.into(o)
	}
	for _, d := range b.Distributions {
		d.into(o, with)
	}
	for _, t := range b.Tables {
		o.SetPath(t.Name, t.rows())
	}
	if len(b.Notes) > 0 {
		o.SetPath("notes", b.Notes)
	}
	return o
}

func (v Value) into(o *ordered.Object) {
	o.SetPath(v.Name, plain(v.Value, v.Unit))
	if v.Low != nil || v.High != nil {
		low, high := v.Promise.Suffixes()
		o.SetPath(v.Name+low, plain(v.Low, v.Unit))
		o.SetPath(v.Name+high, plain(v.High, v.Unit))
	}
}

// Suffixes are appended to an estimate's name for the names of its two ends.
func (p Promise) Suffixes() (low, high string) {
	if p == Bound {
		return "_at_least", "_at_most"
	}
	return "_low", "_high"
}

// Normal95 is how many standard errors a 95 % confidence interval reaches to each side.
const Normal95 = 1.959964

// CountInterval encloses the number of values with 95 % confidence; ok is false when no error is known.
func (d Distribution) CountInterval() (low, high float64, ok bool) {
	if d.CountLow != 0 || d.CountHigh != 0 {
		return d.CountLow, d.CountHigh, d.CountLow < d.CountHigh || d.Count != d.CountLow
	}
	if !(d.CountErr > 0) || math.IsInf(d.CountErr, 0) {
		return 0, 0, false
	}
	return max(0, d.Count-Normal95*d.CountErr), d.Count + Normal95*d.CountErr, true
}

func (d Distribution) into(o *ordered.Object, with layout) {
	set := func(name string, value any, unit Unit) { o.SetPath(d.Name+"."+name, plain(value, unit)) }
	set("count", d.Count, Count)
	if low, high, ok := d.CountInterval(); ok && !with.truth {
		below, above := d.CountPromise.Suffixes()
		set("count"+below, low, Count)
		set("count"+above, high, Count)
	}
	set("mean", orNaN(d.Mean, d.Count > 0), d.Unit)
	set("sum", d.Sum, d.Unit)
	for _, q := range d.Quantiles {
		set(q.Name, orNaN(q.Value, q.Defined), d.Unit)
		if !with.truth {
			low, high := q.Promise.Suffixes()
			set(q.Name+low, orNaN(q.Low, q.Bounded()), d.Unit)
			set(q.Name+high, orNaN(q.High, q.Bounded()), d.Unit)
		}
	}
	if with.cdf {
		set("cdf", d.cdf(), d.Unit)
	}
}

func orNaN(x float64, ok bool) float64 {
	if !ok {
		return math.NaN()
	}
	return x
}

// Bounded reports whether the quantile has a confidence interval.
func (q Quantile) Bounded() bool {
	return q.Defined && (q.Low != 0 || q.High != 0 || q.Value == 0)
}

// cdf lists the steps of the cumulative distribution: the buckets where it rises and those right before a rise, which contain the
// information of all buckets.
func (d Distribution) cdf() []*ordered.Object {
	steps := []*ordered.Object{}
	for i, b := range d.Buckets {
		rises := b.Cumulative > d.cumulativeBefore(i)
		nextRises := i+1 < len(d.Buckets) && d.Buckets[i+1].Cumulative > b.Cumulative
		if !rises && !nextRises {
			continue
		}
		o := ordered.New()
		o.Set("le", plain(b.Upper, d.Unit))
		o.Set("count", plain(b.Cumulative, Count))
		steps = append(steps, o)
	}
	return steps
}

func (d Distribution) cumulativeBefore(i int) float64 {
	if i == 0 {
		return 0
	}
	return d.Buckets[i-1].Cumulative
}

func (t Table) rows() []*ordered.Object {
	rows := make([]*ordered.Object, 0, len(t.Rows))
	for n, row := range t.Rows {
		o := ordered.New()
		for i, c := range t.Columns {
			o.SetPath(c.Name, plain(cell(row, i), c.Unit))
		}
		if len(t.Names) > 0 && len(t.Names[n]) > 0 {
			o.Set("names", t.Names[n])
		}
		rows = append(rows, o)
	}
	return rows
}

// cell returns a cell of a row; a short row has empty cells at its end.
func cell(row []any, i int) any {
	if i >= len(row) {
		return nil
	}
	return row[i]
}
