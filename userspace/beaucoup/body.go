package beaucoup

import (
	"fmt"
	"math"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	countPackets    = bpf.BeaucoupBeaucoupCounterBEAUCOUP_PACKETS
	countDrawn      = bpf.BeaucoupBeaucoupCounterBEAUCOUP_DRAWN
	countTies       = bpf.BeaucoupBeaucoupCounterBEAUCOUP_TIES
	countCrowds     = bpf.BeaucoupBeaucoupCounterBEAUCOUP_CROWDS
	countCollected  = bpf.BeaucoupBeaucoupCounterBEAUCOUP_COLLECTED
	countNew        = bpf.BeaucoupBeaucoupCounterBEAUCOUP_NEW
	countStarted    = bpf.BeaucoupBeaucoupCounterBEAUCOUP_STARTED
	countCollided   = bpf.BeaucoupBeaucoupCounterBEAUCOUP_COLLIDED
	countSecond     = bpf.BeaucoupBeaucoupCounterBEAUCOUP_SECOND
	countAlerts     = bpf.BeaucoupBeaucoupCounterBEAUCOUP_ALERTS
	countAggregates = bpf.BeaucoupBeaucoupCounterBEAUCOUP_AGGREGATES
)

func sqrt(x float64) float64 { return math.Sqrt(x) }

func counter(name string, n uint64, unit report.Unit, help string) report.Value {
	return report.Value{Name: name, Value: n, Unit: unit, Kind: report.Counter, Help: help}
}

func gauge(name string, v any, unit report.Unit, help string) report.Value {
	return report.Value{Name: name, Value: v, Unit: unit, Help: help}
}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return part / whole
}

// lost counts lost coupons and alerts, by cause.
func lost(n []uint64, evicted uint64) map[string]uint64 {
	return map[string]uint64{
		"ties":     n[countTies],
		"crowds":   n[countCrowds],
		"collided": n[countCollided],
		"evicted":  evicted,
		"raced":    n[bpf.BeaucoupBeaucoupCounterBEAUCOUP_RACED],
		"no_key":   n[bpf.BeaucoupBeaucoupCounterBEAUCOUP_NO_KEY],
		"alerts":   n[bpf.BeaucoupBeaucoupCounterBEAUCOUP_LOST_ALERTS],
		"exports":  n[bpf.BeaucoupBeaucoupCounterBEAUCOUP_LOST_EXPORTS],
	}
}

// body is the report of a window.
func (i *estimator) body() report.Body {
	n, alive := i.counts, i.alive
	b := report.Body{Values: []report.Value{
		counter("alerts_raised", n[countAlerts], report.Count, "keys that passed a threshold"),
		gauge("queries_active", len(i.active), report.Count, "queries that run"),
		counter("query_changes", i.changes, report.Count, "times that the queries were exchanged since the start"),
		counter("coupons_drawn", n[countDrawn], report.Count, "coupons that packets drew"),
		gauge("coupons_per_packet", ratio(float64(n[countDrawn]), float64(n[countPackets])), report.None, "coupons drawn a packet"),
		gauge("accesses_per_packet", ratio(3*float64(n[countCollected]+n[countCollided])+2*float64(n[countSecond])+i.tailShare()*float64(n[countCollected]), float64(n[countPackets])), report.None,
			"accesses to registers a packet, at most: three a coupon, and one of the tail where a coupon draws from it"),
		counter("coupons_collected", n[countCollected], report.Count, "coupons that reached a collector"),
		counter("coupons_new", n[countNew], report.Count, "coupons that their collector did not have"),
		counter("collectors_started", n[countStarted], report.Count, "collectors that began"),
		gauge("collectors_alive", alive, report.Count, "collectors whose window has not ended"),
		counter("collectors_evicted", i.evicted, report.Count, "collectors that were ended because they could no longer raise an alert"),
		gauge("collectors_share", float64(alive)/i.places(), report.Ratio, "share of the table that is in use"),
	}, Tables: []report.Table{i.alertTable(), i.queryTable()}}
	if i.second {
		b.Values = append(b.Values, counter("coupons_second", n[countSecond], report.Count, "coupons that went to the second place, because another key has the first"))
	}
	if len(i.earlier) > 0 {
		b.Tables = append(b.Tables, i.totalTable())
	}
	if i.export {
		b.Tables = append(b.Tables, i.vectorTable())
	}
	b.Notes = i.notes(n, alive)
	return b.Answering("alerts_raised")
}

func (i *estimator) alertTable() report.Table {
	t := report.Table{Name: "alerts", Title: "Alerts", Whole: true, Events: true, Limit: i.top, Columns: alertColumns(), Help: "keys that passed a query's threshold"}
	for _, a := range i.last[:min(len(i.last), i.top)] {
		t.Rows = append(t.Rows, []any{a.Query.Name, a.Text, a.Draws, i.when(a.Time, i.offset), a.Low, a.High, a.Time, a.Age,
			a.Total, a.TotalLow, a.TotalHigh, a.Until, a.Confidence, uint64(a.Times)})
	}
	return t
}

// unix2000 separates the two clocks: ns since 1970 are above it, ns since boot below.
const unix2000 = 946684800e9

// when formats a time of the packets' clock for people. In a live run that clock started at boot, offset ns after 1970.
func (c *config) when(ns, offset int64) string {
	if ns < unix2000 && !c.replay {
		ns += offset
	}
	if ns < unix2000 {
		return fmt.Sprintf("%.3f s", float64(ns)/1e9)
	}
	return report.UTC(ns)
}

func alertColumns() []report.Column {
	return []report.Column{
		{Name: "query", Label: true, Help: "the query"},
		{Name: "key", Label: true, Help: "the key that passed its threshold"},
		{Name: "count", Unit: report.Attributes, Metric: true, Low: "count_low", High: "count_high", Help: "distinct attributes at that moment, estimated; in the truth, exactly"},
		{Name: "when", First: true, Help: "the same as time: RFC 3339, UTC"},
		{Name: "count_low", Unit: report.Count, Help: "lower end of its 95 % interval"},
		{Name: "count_high", Unit: report.Count, Help: "upper end of its 95 % interval"},
		{Name: "time", Unit: report.Nanosecond, JSON: true, Help: "when, in the clock of the packets"},
		{Name: "age", Unit: report.Nanosecond, Help: "since the collector's first coupon"},
		totalColumn(),
		{Name: "total_low", Unit: report.Count, Help: "lower end of its 95 % interval"},
		{Name: "total_high", Unit: report.Count, Help: "upper end of its 95 % interval"},
		{Name: "until", Unit: report.Nanosecond, JSON: true, Help: "up to when total counts, in the clock of the packets: to the end of the report's window, or of the query's"},
		{Name: "confidence", Unit: report.Ratio, Help: "probability that there were more than half of the threshold, given how many keys of the query were near it"},
		{Name: "times", Unit: report.Count, Help: "alerts of this key in the report's window: one each time that a window of the query begins"},
	}
}

func (i *estimator) queryTable() report.Table {
	t := report.Table{Name: "queries", Title: "Queries", Whole: true, Settings: true, Details: true, Limit: compile.MaxQueries, Help: "running queries, with their errors",
		Columns: []report.Column{
			{Name: "query", Label: true, Help: "the query"},
			{Name: "alerts", Unit: report.Count, Metric: true, Counter: true, Help: "keys that passed its threshold"},
			{Name: "threshold", Unit: report.Count, Help: "number of distinct attributes at which it alerts"},
			{Name: "m", Unit: report.Count, Help: "coupons of a collector"},
			{Name: "n", Unit: report.Count, Help: "coupons for an alert"},
			{Name: "p", Help: "probability of each coupon"},
			{Name: "expected_count", Unit: report.Count, Help: "count at which it alerts, on average"},
			{Name: "relative_error", Unit: report.Ratio, Help: "mean relative error of that, by theory"},
		}}
	for _, c := range i.queries {
		if !i.active[c] {
			continue
		}
		alerts := uint64(0)
		for _, a := range i.last {
			if a.Query.Text() == c.Text() {
				alerts++
			}
		}
		e := i.effective[c]
		t.Rows = append(t.Rows, []any{c.Name, alerts, int64(c.Threshold), int64(c.Collector.M), int64(c.Collector.N), c.Collector.P,
			e.Draws(), e.Error(float64(c.Threshold))})
	}
	return t
}

// vectorTable exports collectors: what xdpmon merge reads.
func (i *estimator) vectorTable() report.Table {
	t := report.Table{Name: "collectors", Title: "Collectors", Limit: len(i.vectors), Help: "coupons of every key, for xdpmon merge",
		Columns: []report.Column{
			{Name: "query", Label: true, Help: "the query"},
			{Name: "key", Label: true, Help: "the key"},
			{Name: "coupons", Help: "bit c is set: coupon c was collected (hexadecimal)"},
			{Name: "definition", Help: "hosts with other queries, seeds or collectors differ in this"},
			{Name: "n", Unit: report.Count, Help: "coupons for an alert"},
			{Name: "m", Unit: report.Count, Help: "coupons there are"},
			{Name: "effective_p", Help: "probability of each, after ties"},
			{Name: "start", Unit: report.Nanosecond, Help: "first coupon, in the clock of the packets"},
			{Name: "window", Unit: report.Nanosecond, Help: "how long a collector lives"},
		}}
	for _, v := range i.vectors {
		c := v.query
		t.Rows = append(t.Rows, []any{c.Name, c.Key.Name(v.key, i.names), fmt.Sprintf("%016x", v.coupons), fmt.Sprintf("%016x", i.marks[c]),
			int64(c.Collector.N), int64(c.Collector.M), v.effective.P, v.start, int64(c.Window)})
	}
	return t
}

// family of hashes: coupons of different families cannot be combined.
func (c *config) family() string {
	if c.crc {
		return "crc"
	}
	return ""
}

// notes for the operator on this window.
func (i *estimator) notes(n []uint64, alive int) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	notes = append(notes, i.trouble...)
	if lost := n[bpf.BeaucoupBeaucoupCounterBEAUCOUP_LOST_ALERTS]; lost > 0 {
		add("%d alerts were lost because the ring was full: raise beaucoup.ring", lost)
	}
	notes = append(notes, i.doubts()...)
	if c, all := n[countCollided], n[countCollected]+n[countCollided]; all > 0 && 20*c > all {
		add("%.0f %% of the coupons found their slot occupied by another key, so counts are too small: raise beaucoup.entries "+
			"(%d of %.0f are in use), set beaucoup.places=2, lower beaucoup.budget, or use shorter windows", 100*ratio(float64(c), float64(all)), alive, i.places())
	}
	if lost := i.unknown(); lost > 0 {
		add("%d keys that had alerted lost their place in the table before their count was final: total is unknown", lost)
	}
	if g := n[countAggregates]; g > 0 {
		add("%d packets stand for several segments (GSO, GRO): queries that count distinct timestamp count them once", g)
	}
	return notes
}

// sure is the confidence below which an alert is doubtful.
const sure = 0.95

// doubts are notes on queries whose alerts may be of keys with far less than the threshold.
func (i *estimator) doubts() (notes []string) {
	for _, c := range i.queries {
		if !i.active[c] {
			continue
		}
		doubtful, worst := 0, 1.0
		for _, a := range i.last {
			if a.Query.Text() == c.Text() && a.Confidence < sure {
				doubtful++
				worst = min(worst, a.Confidence)
			}
		}
		if doubtful > 0 {
			notes = append(notes, fmt.Sprintf("%d alerts of %s are doubtful: with so many keys that have some of its %d coupons, one with half of the threshold or less "+
				"raises an alert now and then (confidence %.0f %%). Fewer queries at once, or a larger beaucoup.budget, give a better answer.", doubtful, c.Name, c.Collector.N, 100*worst))
		}
	}
	return notes
}
