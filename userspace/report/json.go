package report

import "math"

// MarshalJSON writes the line as docs/output.md describes it. The names are an interface: they stay.
func (l Line) MarshalJSON() ([]byte, error) { return l.object(layout{}).MarshalJSON() }

// layout is what a line shows beside what it always does.
type layout struct {
	clock *Clock // writes the window's wall clock time, too
	cdf   bool   // the steps of distributions: most of a line, and of no use to most readers
	truth bool   // a truth is exact: it has no intervals
}

func (l Line) object(with layout) *object {
	exact := with
	exact.truth = true
	o := newObject()
	o.set("algorithm", l.Algorithm)
	l.fields(o)
	o.set("window", l.Window.object(with.clock))
	if l.Hosts != nil {
		o.set("hosts", l.Hosts.object())
	}
	o.set("packets", l.Packets.object())
	o.set("memory", l.Memory.object())
	o.set("lost", sortedObject(l.Lost))
	o.set("report", l.Report.object(with))
	if l.Truth != nil {
		o.set("truth", l.Truth.object(exact))
	}
	if l.Error != nil {
		o.set("error", l.Error.object(exact))
	}
	return o
}

// MarshalJSON writes the body alone, as it stands under "report".
func (b Body) MarshalJSON() ([]byte, error) { return b.object(layout{}).MarshalJSON() }

func (w Window) object(clock *Clock) *object {
	o := newObject()
	o.set("start", w.Start)
	o.set("end", w.End)
	if clock != nil {
		o.set("start_time", clock.utc(w.Start))
		o.set("end_time", clock.utc(w.End))
	}
	o.set("number", w.Number)
	o.set("last", w.Last)
	o.set("stretched", w.Stretched)
	o.set("cut", w.Cut)
	return o
}

func (p Packets) object() *object {
	o := newObject()
	o.set("seen", p.Seen)
	o.set("segments", p.Segments)
	o.set("parsed", p.Parsed)
	if p.UsedSegments {
		o.set("used_segments", p.Used)
	} else {
		o.set("used", p.Used)
	}
	o.set("bytes", p.Bytes)
	o.set("unparsed", sortedObject(p.Reasons))
	if p.Verdicts != nil {
		o.set("verdicts", p.verdicts())
	}
	if p.Queue != nil {
		o.set("queue", p.Queue.object())
	}
	return o
}

func (p Packets) verdicts() *object {
	o := newObject()
	o.set("passed", p.Passed())
	o.set("dropped", p.Verdicts.Dropped)
	o.set("dropped_bytes", p.Verdicts.DroppedBytes)
	o.set("marked", p.Verdicts.Marked)
	o.set("marked_before", p.Verdicts.MarkedBefore)
	o.set("unmarkable", p.Verdicts.Unmarkable)
	o.set("steered", p.Verdicts.Steered)
	return o
}

func (q *Queue) object() *object {
	o := newObject()
	o.set("carried", q.Carried)
	o.set("carried_bytes", q.CarriedBytes)
	o.set("sent", q.Sent)
	o.set("sent_bytes", q.SentBytes)
	o.set("dropped", q.Dropped)
	o.set("dropped_bytes", q.DroppedBytes)
	o.set("queued", q.Queued)
	o.set("missed", q.Missed)
	o.set("bare", q.Bare)
	o.set("foreign", q.Foreign)
	o.set("stale", q.Stale)
	o.set("unparsed", q.Unparsed)
	return o
}

func (m Memory) object() *object {
	o := newObject()
	o.set("register_bytes", m.RegisterBytes)
	o.set("kernel_bytes", m.KernelBytes)
	return o
}

func (b Body) object(with layout) *object {
	o := newObject()
	for _, v := range b.Values {
		v.into(o)
	}
	for _, d := range b.Distributions {
		d.into(o, with)
	}
	for _, t := range b.Tables {
		o.setPath(t.Name, t.rows())
	}
	if len(b.Notes) > 0 {
		o.setPath("notes", b.Notes)
	}
	return o
}

func (v Value) into(o *object) {
	o.setPath(v.Name, plain(v.Value, v.Unit))
	if v.Low != nil || v.High != nil {
		low, high := v.Promise.Suffixes()
		o.setPath(v.Name+low, plain(v.Low, v.Unit))
		o.setPath(v.Name+high, plain(v.High, v.Unit))
	}
}

// Suffixes are what the names of the two ends of an estimate have behind the estimate's own.
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

func (d Distribution) into(o *object, with layout) {
	set := func(name string, value any, unit Unit) { o.setPath(d.Name+"."+name, plain(value, unit)) }
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

// cdf lists the steps of the cumulative distribution: the buckets where it rises and those right before a rise,
// which together say everything that all buckets would.
func (d Distribution) cdf() []*object {
	steps := []*object{}
	for i, b := range d.Buckets {
		rises := b.Cumulative > d.cumulativeBefore(i)
		nextRises := i+1 < len(d.Buckets) && d.Buckets[i+1].Cumulative > b.Cumulative
		if !rises && !nextRises {
			continue
		}
		o := newObject()
		o.set("le", plain(b.Upper, d.Unit))
		o.set("count", plain(b.Cumulative, Count))
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

func (t Table) rows() []*object {
	rows := make([]*object, 0, len(t.Rows))
	for n, row := range t.Rows {
		o := newObject()
		for i, c := range t.Columns {
			o.setPath(c.Name, plain(cell(row, i), c.Unit))
		}
		if len(t.Names) > 0 && len(t.Names[n]) > 0 {
			o.set("names", t.Names[n])
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
