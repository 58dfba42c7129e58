package carpe

import (
	"fmt"
	"math"

	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Words of "state" in a snapshot.
const (
	stateHeld = iota
	stateExpired
	stateGroups
	stateGroupsFull
	stateHandedFull
	stateFlowsFull
	stateSpoken
	stateHandedReports
	stateMost
	stateWords
)

// Report implements algo.Config.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	n, state, flows, err := opened(s)
	if err != nil {
		return algo.Result{}, err
	}
	count := func(k bpf.CarpeCarpeCounter) uint64 { return n[k] }
	lost := map[string]uint64{
		"no_key":         count(bpf.CarpeCarpeCounterCARPE_NO_KEY),
		"reports":        count(bpf.CarpeCarpeCounterCARPE_LOST_REPORTS),
		"collisions":     count(bpf.CarpeCarpeCounterCARPE_COLLIDED),
		"handed_over":    count(bpf.CarpeCarpeCounterCARPE_LOST_HANDED) + state[stateHandedFull],
		"raced":          count(bpf.CarpeCarpeCounterCARPE_RACED),
		"groups_unheard": count(bpf.CarpeCarpeCounterCARPE_LOST_GROUPS),
		"groups_full":    state[stateGroupsFull],
		"flows_full":     state[stateFlowsFull],
	}
	if c.handover {
		lost["collisions"] = 0
	}
	return algo.Result{Body: c.body(n, state, flows), Used: count(bpf.CarpeCarpeCounterCARPE_PACKETS), Segments: true, Lost: lost}, nil
}

func opened(s *snapshot.Snapshot) (counters, state []uint64, flows map[heavy.Key]sums, err error) {
	r := s.Read()
	counters, state = r.Words("counters", int(bpf.CarpeCarpeCounterCARPE_COUNTS)), r.Words("state", stateWords)
	if err := r.Err(); err != nil {
		return nil, nil, nil, err
	}
	flows, err = flowsOf(s)
	return counters, state, flows, err
}

// Merge implements algo.Merger: reports of different hosts are of different packets, so sums add.
func (c *config) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	n, state, flows, err := opened(a)
	if err != nil {
		return nil, err
	}
	m, other, more, err := opened(b)
	if err != nil {
		return nil, err
	}
	for k, s := range more {
		sum := flows[k]
		sum.plus(s)
		flows[k] = sum
	}
	s := snapshot.Together(a, b)
	s.Words["counters"], s.Words["state"] = snapshot.Sum(n, m), snapshot.Sum(state, other)
	flowsInto(s, flows)
	return s, nil
}

func (c *config) body(n, state []uint64, flows map[heavy.Key]sums) report.Body {
	count := func(k bpf.CarpeCarpeCounter) uint64 { return n[k] }
	b := report.Body{Values: []report.Value{
		{Name: "total", Value: count(bpf.CarpeCarpeCounterCARPE_UNITS), Unit: c.unit(), Kind: report.Counter, Help: "packets or bytes (carpe.count) of all flows"},
		{Name: "held", Value: state[stateHeld], Unit: report.Flows, Help: "entries that hold a flow at the window's end"},
		{Name: "held_most", Value: state[stateMost], Unit: report.Flows, Help: "largest number of entries that held a flow during the window"},
		{Name: "expired", Value: state[stateExpired], Unit: report.Flows, Kind: report.Counter, Help: "entries that were freed because no packet arrived for a quarter of a span"},
		{Name: "bundles_begun", Value: count(bpf.CarpeCarpeCounterCARPE_BEGUN), Unit: report.Count, Kind: report.Counter, Help: "flows that were sampled and got an entry"},
		{Name: "bundles", Value: count(bpf.CarpeCarpeCounterCARPE_FULL), Unit: report.Count, Kind: report.Counter, Help: "bundles that became full"},
		{Name: "bundles_reported", Value: count(bpf.CarpeCarpeCounterCARPE_REPORTED) + state[stateHandedReports], Unit: report.Count, Kind: report.Counter, Help: "... and were reported"},
		{Name: "collided", Value: count(bpf.CarpeCarpeCounterCARPE_COLLIDED), Unit: report.PacketUnit, Kind: report.Counter, Help: "sampled packets that found no free entry"},
		{Name: "asked", Value: count(bpf.CarpeCarpeCounterCARPE_ASKED), Unit: report.PacketUnit, Kind: report.Counter, Help: "packets that looked up their group's parameters"},
		{Name: "asked_unknown", Value: count(bpf.CarpeCarpeCounterCARPE_DEFAULT), Unit: report.PacketUnit, Kind: report.Counter, Help: "... and got those of unknown groups"},
		{Name: "groups", Value: state[stateGroups], Unit: report.Count, Help: "groups that are known to this host"},
		{Name: "groups_told", Value: count(bpf.CarpeCarpeCounterCARPE_TOLD), Unit: report.Count, Kind: report.Counter, Help: "how often the data plane reported a group that was new to it"},
	}}
	if state[stateSpoken] > 0 {
		b.Notes = []string{"elephants are named by the coordinator: this host reports to it."}
		return b.Answering("flows_reported")
	}
	values, table := c.elephants(flows)
	b.Values, b.Tables = append(b.Values, values...), []report.Table{table}
	if n := count(bpf.CarpeCarpeCounterCARPE_COLLIDED); !c.handover && 100*n > count(bpf.CarpeCarpeCounterCARPE_BEGUN) {
		b.Notes = append(b.Notes, fmt.Sprintf("%d sampled packets found no free entry: counts are too small. Raise carpe.entries, or set carpe.handover.", n))
	}
	return b.Answering("elephants")
}

// Oracle implements algo.OracleProvider.
func (i *instance) Oracle() algo.Oracle {
	return &oracle{config: i.config, Tally: heavy.NewTally(i.spec, i.bytes)}
}

// oracle counts every flow, over the windows of a span.
type oracle struct {
	*config
	*heavy.Tally                         // of the running window
	before       []map[heavy.Key]float64 // ... and of those before, the oldest first
}

// Window implements algo.Oracle.
func (o *oracle) Window(report.Window) report.Body {
	o.before = append(o.before, o.Counts)
	if len(o.before) > o.span {
		o.before = o.before[1:]
	}
	all := map[heavy.Key]float64{}
	for _, one := range o.before {
		for k, n := range one {
			all[k] += n
		}
	}
	t, n := o.header(), 0
	t.Columns = t.Columns[:o.truthColumns()]
	for _, f := range heavy.Top(all, math.MaxInt) {
		if f.Count < o.threshold {
			break
		}
		if n++; n <= o.top {
			t.Rows = append(t.Rows, append(o.spec.Cells(f.Key), f.Count))
		}
	}
	b := report.Body{Values: []report.Value{
		{Name: "total", Value: o.Total, Unit: o.unit(), Kind: report.Counter, Help: "packets or bytes (carpe.count) of all flows"},
		{Name: "elephants", Value: n, Unit: report.Flows, Help: "flows that have reached carpe.threshold"},
		{Name: "flows_seen", Value: len(all), Unit: report.Flows, Help: "different flows of the span"},
	}, Tables: []report.Table{t}}
	o.Forget()
	return b
}
