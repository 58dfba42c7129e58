package fridge

import (
	"maps"
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/samples"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// oracle is the truth of a window: every response matched with its request, nothing sampled, nothing binned.
type oracle struct {
	config  *config
	tracker *delay.Tracker

	requests uint64
	first    []int64 // ns
	second   []int64
	sum      []int64
	bytes    []int64
	packets  []int64
	groups   map[uint64][]int64
	samples  []samples.Sample  // of all responses, where samples are listed
	shut     map[uint64]uint64 // zero windows by group; of all without groups
}

func newOracle(c *config) algo.Oracle {
	return &oracle{config: c, tracker: delay.NewTracker(c.rules), groups: map[uint64][]int64{}, shut: map[uint64]uint64{}}
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) {
	if o.config.shuts() && o.config.rules.Shuts(p) {
		o.shut[o.key(p, true)]++
	}
	switch e := o.tracker.Packet(p); e.Outcome {
	case delay.Request, delay.Repeated:
		o.requests++
	case delay.Answered:
		o.answered(p, e)
	case delay.Finished:
		o.second = append(o.second, e.Second)
		o.sum = append(o.sum, e.Delay)
	}
}

func (o *oracle) answered(p *packet.Packet, e delay.Event) {
	o.first = append(o.first, e.Delay)
	if o.config.samples > 0 {
		o.samples = append(o.samples, exactSample(p, e))
	}
	if o.config.volumes() {
		o.bytes = append(o.bytes, int64(e.Volume.Bytes))
		o.packets = append(o.packets, int64(e.Volume.Packets))
	}
	if o.config.grouped() {
		key := o.key(p, e.Reverse)
		o.groups[key] = append(o.groups[key], e.Delay)
	}
}

// exactSample is a response by itself.
func exactSample(p *packet.Packet, e delay.Event) samples.Sample {
	from := packet.Packet{Valid: packet.IP | packet.Ports, Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: p.DstPort, Proto: p.Proto}
	if e.Reverse {
		from.Src, from.Dst, from.SrcPort, from.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	}
	key, _ := samples.Spec.Of(&from)
	return samples.Sample{Time: p.Time, Delay: e.Delay, Weight: 1, Key: key}
}

// key of a packet's group; 0 without groups.
func (o *oracle) key(p *packet.Packet, reverse bool) uint64 {
	if !o.config.grouped() {
		return 0
	}
	return o.config.group.Key(p, reverse)
}

// Window implements algo.Oracle.
func (o *oracle) Window(report.Window) report.Body {
	c := o.config
	n := uint64(len(o.first))
	b := report.Body{Values: []report.Value{
		{Name: "matched", Value: n, Unit: report.Responses, Kind: report.Counter, Help: "requests that were answered"},
		{Name: "estimated", Value: n, Unit: report.Requests, Kind: report.Counter, Help: "requests that were answered"},
		{Name: "requests", Value: o.requests, Unit: report.Requests, Kind: report.Counter, Help: "packets that ask, repeated ones included"},
		{Name: "match_rate", Value: answered(float64(n), float64(o.requests)), Unit: report.Ratio, Help: "answered share of the requests"},
	}}
	if c.shuts() {
		var all uint64
		for _, n := range o.shut {
			all += n
		}
		b.Values = append(b.Values, report.Value{Name: "zero_windows", Value: all, Unit: report.Count, Kind: report.Counter, Help: zeroWindowsHelp})
	}
	b.Distributions = append(b.Distributions, delay.Exact(c.delayLabel(), o.first))
	if c.rules.Finals {
		b.Distributions = append(b.Distributions, delay.Exact(ackLabel, o.second), delay.Exact(handshakeLabel, o.sum))
	}
	if c.volumes() {
		b.Distributions = append(b.Distributions, delay.Exact(bytesLabel, o.bytes), delay.Exact(packetsLabel, o.packets))
	}
	if c.sla != nil {
		over := above(o.first, c.sla.Limit)
		b.Values = append(b.Values, report.Value{Name: "sla.over", Value: over, Unit: report.Ratio},
			report.Value{Name: "sla.verdict", Value: c.sla.TrueVerdict(over), Kind: report.Info})
	}
	if c.grouped() {
		b.Tables = append(b.Tables, c.groupTable(o.groupRows()))
	}
	if c.samples > 0 {
		slices.SortFunc(o.samples, samples.Sample.Slower)
		b.Tables = append(b.Tables, c.sampling().Tables(samples.Window{List: o.samples}, nil, 0)[0])
	}
	o.next()
	return b
}

// next starts a window; pending requests stay pending.
func (o *oracle) next() {
	o.requests, o.samples = 0, o.samples[:0]
	o.first, o.second, o.sum, o.bytes, o.packets = o.first[:0], o.second[:0], o.sum[:0], o.bytes[:0], o.packets[:0]
	clear(o.groups)
	clear(o.shut)
}

// groupRows are in the order of their keys, so that the order of ties is the same in every run.
func (o *oracle) groupRows() []groupRow {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(o.groups)), maps.Keys(o.shut))
	slices.Sort(keys)
	var rows []groupRow
	for _, key := range slices.Compact(keys) {
		rows = append(rows, o.groupRow(key))
	}
	return rows
}

func (o *oracle) groupRow(key uint64) groupRow {
	c, values := o.config, o.groups[key]
	slices.Sort(values)
	n := float64(len(values))
	g := groupRow{name: c.group.Name(key), samples: n, estimated: n, p50: math.NaN(), p95: math.NaN(), shut: o.shut[key]}
	if n > 0 {
		g.p50 = float64(delay.Percentile(values, 0.5))
	}
	if n*0.05 >= 0.5 {
		g.p95 = float64(delay.Percentile(values, 0.95))
	}
	if c.sla != nil {
		over := above(values, c.sla.Limit)
		verdict := c.sla.TrueVerdict(over)
		g.judged = delay.Judgement{Over: over, Low: over, High: over, Verdict: verdict}
		if verdict == delay.Broken {
			g.judged.Confidence = 1
		}
	}
	return g
}

// above is the share of values that exceed a limit.
func above(values []int64, limit float64) float64 {
	n := 0
	for _, v := range values {
		if float64(v) > limit {
			n++
		}
	}
	return ratio(float64(n), float64(len(values)))
}
