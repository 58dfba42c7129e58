package rates

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Words are the flows with the largest rates for a snapshot, most at most; those with packets enough before the others.
func (m *Measure) Words(flows map[heavy.Key]Flow, most int) snapshot.Words {
	keys := slices.SortedFunc(maps.Keys(flows), heavy.Key.Compare)
	keys = slices.DeleteFunc(keys, func(k heavy.Key) bool { f := flows[k]; return !m.known(&f) })
	if len(keys) > most {
		slices.SortStableFunc(keys, func(a, b heavy.Key) int {
			x, y := flows[a], flows[b]
			if large := m.large(&x); large != m.large(&y) {
				return map[bool]int{true: -1, false: 1}[large]
			}
			return cmp.Compare(m.rank(&y), m.rank(&x))
		})
		keys = keys[:most]
		slices.SortFunc(keys, heavy.Key.Compare)
	}
	w := make(snapshot.Words, 0, width*len(keys))
	for _, key := range keys {
		f := flows[key]
		w = append(append(w, key[:]...), f.Packets, f.Events, f.Entries, f.Sum, f.Weights, f.Squares)
	}
	return w
}

// Listed is a flow with its rate.
type Listed struct {
	Key       heavy.Key
	Rate      float64 // share, or mean delay in ns
	low, high float64
	packets   uint64 // since its first event
	events    uint64 // or delays
}

// List orders the flows with packets enough.
func (m *Measure) List(flows map[heavy.Key]Flow) (list []Listed) {
	for key, f := range flows {
		if !m.known(&f) || !m.large(&f) || m.rank(&f) <= 0 {
			continue
		}
		one := Listed{Key: key, Rate: m.rank(&f), packets: f.Packets + f.Entries, events: f.Events + f.Entries}
		if m.Tick > 0 {
			one.events = f.Events
		}
		one.low, one.high = m.bounds(&f)
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Listed) int { return cmp.Or(cmp.Compare(b.Rate, a.Rate), a.Key.Compare(b.Key)) })
	return list
}

// Table of a statistic's flows: value is the column that ranks them.
func (m *Measure) Table(spec heavy.Spec, name, title string, value report.Column, list []Listed, top int) report.Table {
	least, most := "share_at_least", "share_at_most"
	counted := report.Column{Name: "events", Unit: report.Events, Help: "packets that were affected, of those counted"}
	if m.Tick > 0 {
		least, most = "mean_at_least_ns", "mean_at_most_ns"
		counted = report.Column{Name: "delays", Unit: report.Count, Help: "delays that were followed"}
	}
	value.Low, value.High, value.Promise, value.Together = least, most, report.Bound, true
	t := report.Table{Name: name, Title: title, Whole: true, Limit: top, Help: Help,
		Columns: append(spec.Columns(), value,
			report.Column{Name: least, Unit: value.Unit, Help: "the flow's rate is larger in 95 of 100 cases, and most often"},
			report.Column{Name: most, Unit: value.Unit, Help: "the flow's rate is smaller in 95 of 100 cases, and most often"},
			report.Column{Name: "packets", Unit: report.PacketUnit, Help: "packets of the flow that were counted, from its first event on"}, counted)}
	for _, f := range list[:min(len(list), top)] {
		t.Rows = append(t.Rows, append(spec.Cells(f.Key), m.Cell(f.Rate), m.Cell(f.low), m.Cell(f.high), int64(f.packets), int64(f.events)))
	}
	return t
}

// Help of the tables.
const Help = "largest rate first, of flows with lean.least packets or more"

// Cell rounds a number as the report requires: ns are whole.
func (m *Measure) Cell(x float64) any {
	if m.Tick > 0 && !math.IsNaN(x) {
		return int64(math.Round(x))
	}
	return x
}
