package precision

import (
	"fmt"

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
func (i *instance) Window(_ report.Window, bank int) (_ algo.Result, err error) {
	if i.words, err = i.counts.ReadReset(bank, i.words); err != nil {
		return algo.Result{}, fmt.Errorf("read window: %w", err)
	}
	table, err := i.ways.Read(bank)
	if err != nil {
		return algo.Result{}, err
	}
	n := counts(i.words)
	return algo.Result{
		Body: i.body(n, table),
		Used: n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS],
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
			{Name: "total", Value: units, Unit: i.unit(), Kind: report.Counter, Help: "of all flows"},
			{Name: "matched", Value: n[bpf.PrecisionPrecisionCounterPRECISION_MATCHED], Unit: report.PacketUnit, Kind: report.Counter,
				Help: "packets whose flow had an entry"},
			{Name: "recirculated", Value: passes, Unit: report.PacketUnit, Kind: report.Counter, Help: "packets that went through twice"},
			{Name: "recirculated_share", Value: share(float64(passes), packets), Unit: report.Ratio, Help: "of the packets with a key"},
			{Name: "entries_used", Value: t.Records, Unit: report.Count, Help: "of all CPUs that saw a flow"},
			{Name: "entries", Value: t.Entries, Unit: report.Count, Help: "on these CPUs"},
			{Name: "smallest", Value: t.Minimum, Unit: i.unit(), Help: "counter that a flow without an entry competes with, on average"},
			{Name: "unseen_below", Value: heavy.Unseen * t.Minimum, Unit: i.unit(), Help: "with 95 % probability a flow with more has an entry"},
			{Name: "twice", Value: t.Twice, Unit: report.Count, Help: "flows with two entries on one CPU: second passes that overtook each other"},
		},
		Tables: []report.Table{i.table(heavy.Top(t.Counts, i.top), units, t.Minimum)},
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

// table lists flows. What a flow had before it was admitted is geometric with the mean that it was given then, which is no
// more than its count and on average no more than what others compete with now.
func (i *instance) table(flows []heavy.Flow, total uint64, smallest float64) report.Table {
	t := i.header()
	for _, f := range flows {
		row := append(i.ways.Spec.Cells(f.Key), f.Count, share(f.Count, total), min(f.Count, smallest))
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (i *instance) header() report.Table {
	amount := "packets"
	if i.bytes {
		amount = "bytes"
	}
	return report.Table{Name: "flows", Title: "heaviest flows", Limit: i.top, Help: "heaviest flows of the window",
		Columns: append(i.ways.Spec.Columns(),
			report.Column{Name: amount, Unit: i.unit(), Metric: true, Help: "estimate"},
			report.Column{Name: "share", Unit: report.Ratio, Help: "of all"},
			report.Column{Name: "error", Unit: i.unit(), Help: "standard error of the estimate: what was sent before it had an entry"})}
}

func (i *instance) notes(n counts, t *heavy.Table) (notes []string) {
	packets, passes := n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS], n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN]
	if refused := n.refused(); refused > passes/100+uint64(i.delay) {
		notes = append(notes, fmt.Sprintf("%d second passes were refused: counts of flows come out too small. Set precision.recirculation higher, or precision.initial.", refused))
	}
	matched := n[bpf.PrecisionPrecisionCounterPRECISION_MATCHED]
	if i.ways.Initial > 10 && 10*matched < 9*packets && 2*t.Records < t.Entries {
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
	t.Columns = t.Columns[:len(t.Columns)-1] // the truth has no error
	for _, f := range heavy.Top(o.counts, o.top) {
		t.Rows = append(t.Rows, append(o.ways.Spec.Cells(f.Key), f.Count, share(f.Count, o.total)))
	}
	b := report.Body{Values: []report.Value{
		{Name: "total", Value: o.total, Unit: o.unit(), Kind: report.Counter, Help: "of all flows"},
		{Name: "flows_seen", Value: len(o.counts), Unit: report.Count, Help: "different flows"},
	}, Tables: []report.Table{t}}
	o.counts, o.total = map[heavy.Key]float64{}, 0
	return b
}

// Ways are the arrays as they are configured, for measurements that read them directly.
func (i *instance) Ways() *heavy.Ways { return &i.ways }
