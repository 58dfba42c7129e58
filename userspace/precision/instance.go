package precision

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/precision"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

type instance struct {
	*config
	counts *maps.Array
	words  []uint64
	listed []heavy.Key // in the last window: the oracle judges them
}

func newInstance(v algo.Values, env algo.Env) (algo.Instance, error) {
	c, err := newConfig(v, env)
	if err != nil {
		return nil, err
	}
	return &instance{config: c}, nil
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	if err := maps.SetConstant(spec, "precision_bytes", i.bytes); err != nil {
		return err
	}
	return i.ways.Configure(spec)
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return 0 }

// RecirculationShare implements algo.Recirculating.
func (i *instance) RecirculationShare() float64 { return i.budget }

// RecirculationDelay implements algo.Delayed.
func (i *instance) RecirculationDelay() int { return i.delay }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	if i.counts, err = set.Array("precision_counts"); err != nil {
		return err
	}
	return i.ways.Bind(set)
}

// Window implements algo.Instance.
func (i *instance) Window(w report.Window, bank int) (_ algo.Result, err error) {
	if i.words, err = i.counts.ReadReset(bank, i.words); err != nil {
		return algo.Result{}, fmt.Errorf("read window: %w", err)
	}
	table, err := i.ways.Read(bank)
	if err != nil {
		return algo.Result{}, err
	}
	n := counts(i.words)
	wanted := i.passes * time.Duration(w.End-w.Start).Seconds()
	if err := i.ways.Adapt(bank, table, float64(n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN]), wanted, i.unitOfInitial()); err != nil {
		return algo.Result{}, err
	}
	return algo.Result{
		Body:     i.body(n, table),
		Used:     n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS],
		Segments: true,
		Lost: map[string]uint64{
			"no_key":                n[bpf.PrecisionPrecisionCounterPRECISION_NO_KEY],
			"recirculation_refused": n.refused(),
		},
	}, nil
}

// counts by enum precision_counter.
type counts []uint64

// refused second passes; a replay with a delay may also end before they came.
func (n counts) refused() uint64 {
	asked, written := n[bpf.PrecisionPrecisionCounterPRECISION_ADMITTED], n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN]
	return asked - min(asked, written)
}

func (i *instance) unit() report.Unit {
	if i.bytes {
		return report.Bytes
	}
	return report.PacketUnit
}

func (i *instance) body(n counts, t *heavy.Table) report.Body {
	packets := n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS]
	units := n[bpf.PrecisionPrecisionCounterPRECISION_UNITS]
	passes := n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN]
	b := report.Body{
		Values: []report.Value{
			{Name: "total", Value: units, Unit: i.unit(), Kind: report.Counter, Help: "packets or bytes (precision.count) of all flows"},
			{Name: "matched", Value: n[bpf.PrecisionPrecisionCounterPRECISION_MATCHED], Unit: report.PacketUnit, Kind: report.Counter,
				Help: "packets whose flow had an entry"},
			{Name: "recirculated", Value: passes, Unit: report.PacketUnit, Kind: report.Counter, Help: "packets that went through twice"},
			{Name: "recirculated_share", Value: share(float64(passes), packets), Unit: report.Ratio, Help: "share of the packets with a key that went through twice"},
			{Name: "entries_used", Value: t.Records, Unit: report.Count, Help: "entries that hold a flow, on all CPUs that saw one"},
			{Name: "entries", Value: t.Entries, Unit: report.Count, Help: "entries there are, on these CPUs"},
			{Name: "smallest_entry", Value: t.Minimum, Unit: i.unit(), Help: "count that a flow without an entry competes with, on average"},
			{Name: "unseen_below", Value: t.Unseen, Unit: i.unit(), Help: "a flow with so many has an entry, with 95 % probability"},
			{Name: "initial", Value: t.Initial, Unit: i.unit(), Help: "value of an empty entry in this window"},
			{Name: "flows_with_two_entries", Value: t.Twice, Unit: report.Count, Help: "flows with two entries on one CPU: second passes that overtook each other"},
		},
		Tables: []report.Table{i.table(t, units)},
		Notes:  i.notes(n, t),
	}
	return b
}

func share(part float64, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return part / float64(whole)
}

// table lists flows.
func (i *instance) table(from *heavy.Table, total uint64) report.Table {
	t := i.header()
	i.listed = i.listed[:0]
	for _, f := range heavy.Top(from.Counts, i.top) {
		g, noted := from.Guesses[f.Key]
		if !noted { // of what it began with nothing is known but that it competed for it
			g = heavy.Unnoted(f.Count, from.Minimum)
		}
		low, high := g.Interval(f.Count)
		remark := ""
		if g.Doubtful(f.Count) {
			remark = doubtful
		}
		t.Rows = append(t.Rows, append(i.ways.Spec.Cells(f.Key), f.Count, share(f.Count, total), remark, g.Deviation(), low, high, g.Counted(f.Count)))
		i.listed = append(i.listed, f.Key)
	}
	return t
}

// doubtful marks a row of which less than half was counted packet by packet.
const doubtful = "may be half or less"

// truthColumns are those of header() that the truth has: the key's, and two.
func (i *instance) truthColumns() int { return len(i.ways.Spec.Columns()) + 2 }

func (i *instance) header() report.Table {
	amount := "packets"
	if i.bytes {
		amount = "bytes"
	}
	return report.Table{Name: "flows", Title: "heaviest flows", Limit: i.top, Help: "heaviest flows of the window",
		Columns: append(i.ways.Spec.Columns(),
			report.Column{Name: amount, Unit: i.unit(), Metric: true, Help: "what the flow had in the window, estimated", Low: amount + "_low", High: amount + "_high"},
			report.Column{Name: "share", Unit: report.Ratio, Help: "of all"},
			report.Column{Name: "remark", Help: "\"" + doubtful + "\": most of the estimate was set when the flow got its entry"},
			report.Column{Name: "standard_error", Unit: i.unit(), Help: "standard error of the estimate: what was sent before it had an entry"},
			report.Column{Name: amount + "_low", Unit: i.unit(), Help: "lower end of its 95 % interval"},
			report.Column{Name: amount + "_high", Unit: i.unit(), Help: "upper end of its 95 % interval"},
			report.Column{Name: "counted", Unit: i.unit(), Help: "what was counted one by one: the flow has at least as much"})}
}

func (i *instance) notes(n counts, t *heavy.Table) (notes []string) {
	packets, passes := n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS], n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN]
	if refused := n.refused(); refused > passes/100+uint64(i.delay) {
		notes = append(notes, fmt.Sprintf("%d second passes were refused: counts of flows come out too small. Set precision.recirculation higher, or precision.initial.", refused))
	}
	if t.Initial > i.ways.Initial {
		notes = append(notes, fmt.Sprintf("precision.initial was %d in this window, because second passes came near precision.passes before: small flows that are listed stand too high by as much.", t.Initial))
	}
	matched := n[bpf.PrecisionPrecisionCounterPRECISION_MATCHED]
	if t.Initial > 10 && 10*matched < 9*packets && 2*t.Records < t.Entries {
		notes = append(notes, "less than half of the entries are taken, and many packets belong to none: a smaller precision.initial names more flows, for more second passes.")
	}
	return notes
}

// Oracle implements algo.Truthful.
func (i *instance) Oracle() algo.Oracle { return &oracle{instance: i, counts: map[heavy.Key]float64{}} }

type oracle struct {
	*instance
	counts map[heavy.Key]float64
	total  uint64
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) {
	key, ok := o.ways.Spec.Of(p)
	if !ok {
		return
	}
	units := uint64(p.Segs)
	if o.bytes {
		units = uint64(p.Len)
	}
	o.counts[key] += float64(units)
	o.total += units
}

// Window implements algo.Oracle.
func (o *oracle) Window(report.Window) report.Body {
	t := o.header()
	t.Columns, t.Limit = t.Columns[:o.truthColumns()], 2*o.top
	for _, f := range o.judged() {
		t.Rows = append(t.Rows, append(o.ways.Spec.Cells(f.Key), f.Count, share(f.Count, o.total)))
	}
	b := report.Body{Values: []report.Value{
		{Name: "total", Value: o.total, Unit: o.unit(), Kind: report.Counter, Help: "packets or bytes (precision.count) of all flows"},
		{Name: "flows_seen", Value: len(o.counts), Unit: report.Count, Help: "different flows"},
	}, Tables: []report.Table{t}}
	o.counts, o.total = map[heavy.Key]float64{}, 0
	return b
}

// judged are the largest flows, and behind them what is listed besides.
func (o *oracle) judged() []heavy.Flow {
	flows := heavy.Top(o.counts, o.top)
	in := map[heavy.Key]bool{}
	for _, f := range flows {
		in[f.Key] = true
	}
	for _, key := range o.listed {
		if !in[key] {
			flows = append(flows, heavy.Flow{Key: key, Count: o.counts[key]})
		}
	}
	return flows
}

// Ways are the arrays as they are configured, for measurements that read them directly.
func (i *instance) Ways() *heavy.Ways { return &i.ways }
