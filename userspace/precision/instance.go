package precision

import (
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/constant"
	bpf "github.com/xdpmon/xdpmon/bpf/precision"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

type instance struct {
	*config
	head   snapshot.Head
	counts *maps.Array
	words  []uint64
	judged bool        // an oracle compares listed with the truth
	listed []heavy.Key // in the last window, for the oracle
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	own := *c // its ways are bound to this instance's maps
	return &instance{config: &own, head: env.Head}, nil
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	if err := maps.SetConstants(spec, map[constant.Name]any{constant.PrecisionBytes: i.bytes}); err != nil {
		return err
	}
	return i.ways.Configure(spec)
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return 0 }

// RecirculationShare implements algo.Recirculator.
func (i *instance) RecirculationShare() float64 { return i.budget }

// RecirculationDelay implements algo.RecirculationDelayer.
func (i *instance) RecirculationDelay() int { return i.delay }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	if i.counts, err = set.Array("precision_counts"); err != nil {
		return err
	}
	return i.ways.Bind(set)
}

// counterWords are the counters in a snapshot; a heavy.Table is beside them.
const counterWords = "counters"

// Read implements algo.Instance. The initial value of the next window is chosen here.
func (i *instance) Read(w report.Window, bank int) (_ *snapshot.Snapshot, err error) {
	if i.words, err = i.counts.ReadReset(bank, i.words); err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	table, err := i.ways.Read(bank)
	if err != nil {
		return nil, err
	}
	n := counts(i.words)
	table.Unseen = i.ways.UnseenAmong(n.unmatched())
	wanted := i.passes * time.Duration(w.End-w.Start).Seconds()
	if err := i.ways.Adapt(bank, table, float64(n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN]), wanted, i.unitOfInitial()); err != nil {
		return nil, err
	}
	if i.judged {
		i.listed = i.listed[:0]
		for _, f := range heavy.Top(table.Counts, i.top) {
			i.listed = append(i.listed, f.Key)
		}
	}
	s := snapshot.New(i.head, w)
	s.Words[counterWords] = i.words
	table.Into(s)
	return s, nil
}

// Report implements algo.Config.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	n, table, err := opened(s)
	if err != nil {
		return algo.Result{}, err
	}
	return algo.Result{
		Body:     c.body(n, table),
		Used:     n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS],
		Segments: true,
		Lost: map[string]uint64{
			"no_key":                n[bpf.PrecisionPrecisionCounterPRECISION_NO_KEY],
			"recirculation_refused": n.refused(),
		},
	}, nil
}

func opened(s *snapshot.Snapshot) (counts, *heavy.Table, error) {
	r := s.Read()
	n, table := counts(r.Words(counterWords, int(bpf.PrecisionPrecisionCounterPRECISION_COUNTS))), heavy.TableOf(r)
	return n, table, r.Err()
}

// Merge implements algo.Merger: it sums the entries' counts, whatever the seeds: keys are stored whole. The interval of a flow without an entry on a host includes
// what that host may have missed.
func (c *config) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	n, t, err := opened(a)
	if err != nil {
		return nil, err
	}
	m, u, err := opened(b)
	if err != nil {
		return nil, err
	}
	s := snapshot.Together(a, b)
	s.Words[counterWords] = snapshot.Sum(n, m)
	t.Plus(u, a.Parts, b.Parts).Into(s)
	return s, nil
}

// counts by enum precision_counter.
type counts []uint64

// unmatched units: of packets whose flow had no entry, taken to be as large as the others.
func (n counts) unmatched() float64 {
	packets := n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS]
	if packets == 0 {
		return 0
	}
	matched := float64(n[bpf.PrecisionPrecisionCounterPRECISION_MATCHED])
	return float64(n[bpf.PrecisionPrecisionCounterPRECISION_UNITS]) * max(0, 1-matched/float64(packets))
}

// refused second passes; a replay with a delay may also end before pending ones.
func (n counts) refused() uint64 {
	asked, written := n[bpf.PrecisionPrecisionCounterPRECISION_ADMITTED], n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN]
	return asked - min(asked, written)
}

func (c *config) unit() report.Unit {
	if c.bytes {
		return report.Bytes
	}
	return report.PacketUnit
}

func (c *config) body(n counts, t *heavy.Table) report.Body {
	packets := n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS]
	units := n[bpf.PrecisionPrecisionCounterPRECISION_UNITS]
	passes := n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN]
	b := report.Body{
		Values: []report.Value{
			{Name: "total", Value: units, Unit: c.unit(), Kind: report.Counter, Help: "packets or bytes (precision.count) of all flows"},
			{Name: "matched", Value: n[bpf.PrecisionPrecisionCounterPRECISION_MATCHED], Unit: report.PacketUnit, Kind: report.Counter,
				Help: "packets whose flow had an entry"},
			{Name: "recirculated", Value: passes, Unit: report.PacketUnit, Kind: report.Counter, Help: "packets that passed twice"},
			{Name: "recirculated_share", Value: share(float64(passes), packets), Unit: report.Ratio, Help: "share of the packets with a key that passed twice"},
			{Name: "entries_used", Value: t.Records, Unit: report.Count, Help: "entries that hold a flow, on all CPUs that saw one"},
			{Name: "entries", Value: t.Entries, Unit: report.Count, Help: "entries there are, on these CPUs"},
			{Name: "smallest_entry", Value: t.Minimum, Unit: c.unit(), Help: "count that a flow without an entry competes with, on average"},
			{Name: "unseen_below", Value: t.Unseen, Unit: c.unit(), Help: "a flow with so many has an entry, with 95 % probability"},
			{Name: "initial", Value: t.Initial, Unit: c.unit(), Help: "value of an empty entry in this window"},
			{Name: "flows_with_two_entries", Value: t.Twice, Unit: report.Count, Help: "flows with two entries on one CPU: second passes that overtook each other"},
		},
		Tables: []report.Table{c.table(t, units)},
		Notes:  c.notes(n, t),
	}
	return b.Answering("unseen_below")
}

func share(part float64, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return part / float64(whole)
}

// table lists flows.
func (c *config) table(from *heavy.Table, total uint64) report.Table {
	t := c.header()
	for _, f := range heavy.Top(from.Counts, c.top) {
		g, noted := from.Guesses[f.Key]
		if !noted { // of its initial value only the competing counters are known
			g = heavy.Unnoted(f.Count, from.Minimum)
		}
		low, high := g.Interval(f.Count)
		least, most := g.Bounds(f.Count)
		absent := from.Absent[f.Key] // a bound by itself
		most += absent
		remark := ""
		if g.Doubtful(f.Count) {
			remark = doubtful
		}
		if remark == "" && absent == 0 && !c.bytes {
			most = math.NaN()
		} else {
			low, high = math.NaN(), math.NaN()
		}
		t.Rows = append(t.Rows, append(c.ways.Spec.Cells(f.Key), f.Count, share(f.Count, total), remark, g.Deviation(), low, high, least, most))
	}
	return t
}

// doubtful marks a row of which less than half was counted packet by packet. The size of such a flow depends on the number of small ones
// that may have had luck, so it has bounds and no interval. Bytes have no other: a value at admission does not give the number of packets, one large
// one or many small ones, and if entries often change their flow, the count of an earlier entry is missing.
const doubtful = "may be half or less"

// truthColumns are the columns of header() that the truth has: the key's, and two.
func (c *config) truthColumns() int { return len(c.ways.Spec.Columns()) + 2 }

func (c *config) header() report.Table {
	amount := "packets"
	if c.bytes {
		amount = "bytes"
	}
	return report.Table{Name: "flows", Title: "heaviest flows", Limit: c.top, Help: "heaviest flows of the window",
		Columns: append(c.ways.Spec.Columns(),
			report.Column{Name: amount, Unit: c.unit(), Metric: true, Rate: true, Help: "what the flow had in the window, estimated", Low: amount + "_low", High: amount + "_high",
				Least: "counted", Most: amount + "_at_most"},
			report.Column{Name: "share", Unit: report.Ratio, Help: "of all"},
			report.Column{Name: "remark", Help: "\"" + doubtful + "\": most of the estimate was set when the flow got its entry"},
			report.Column{Name: "standard_error", Unit: c.unit(), Help: "standard error of the estimate: what was sent before it had an entry"},
			report.Column{Name: amount + "_low", Unit: c.unit(), Help: "lower end of its 95 % interval; - where only bounds are known"},
			report.Column{Name: amount + "_high", Unit: c.unit(), Help: "upper end of its 95 % interval; - where only bounds are known"},
			report.Column{Name: "counted", Unit: c.unit(), Help: "what was counted one by one: the flow has at least as much"},
			report.Column{Name: amount + "_at_most", Unit: c.unit(), Help: "without an interval: it has no more, with 95 % probability"})}
}

func (c *config) notes(n counts, t *heavy.Table) (notes []string) {
	packets, passes := n[bpf.PrecisionPrecisionCounterPRECISION_PACKETS], n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN]
	if refused := n.refused(); refused > passes/100+uint64(c.delay) {
		notes = append(notes, fmt.Sprintf("%d second passes were refused: counts of flows are too small. Raise precision.recirculation or precision.initial.", refused))
	}
	if t.Initial > c.ways.Initial {
		notes = append(notes, fmt.Sprintf("precision.initial was %d in this window, because second passes were near precision.passes before: counts of small flows in the list are too large by up to that.", t.Initial))
	}
	matched := n[bpf.PrecisionPrecisionCounterPRECISION_MATCHED]
	if t.Initial > 10 && 10*matched < 9*packets && 2*t.Records < t.Entries {
		notes = append(notes, "less than half of the entries are in use, and many packets have none: a smaller precision.initial admits more flows, for more second passes.")
	}
	return notes
}

// Oracle implements algo.OracleProvider.
func (i *instance) Oracle() algo.Oracle {
	i.judged = true
	return &oracle{i, heavy.NewTally(i.ways.Spec, i.bytes)}
}

type oracle struct {
	*instance
	*heavy.Tally
}

// Window implements algo.Oracle.
func (o *oracle) Window(report.Window) report.Body {
	t := o.header()
	t.Columns, t.Limit = t.Columns[:o.truthColumns()], 2*o.top
	for _, f := range o.judged() {
		t.Rows = append(t.Rows, append(o.ways.Spec.Cells(f.Key), f.Count, share(f.Count, o.Total)))
	}
	b := report.Body{Values: []report.Value{
		{Name: "total", Value: o.Total, Unit: o.unit(), Kind: report.Counter, Help: "packets or bytes (precision.count) of all flows"},
		{Name: "flows_seen", Value: len(o.Counts), Unit: report.Count, Help: "different flows"},
	}, Tables: []report.Table{t}}
	o.Forget()
	return b
}

// judged are the largest flows, followed by other listed ones.
func (o *oracle) judged() []heavy.Flow {
	flows := heavy.Top(o.Counts, o.top)
	in := map[heavy.Key]bool{}
	for _, f := range flows {
		in[f.Key] = true
	}
	for _, key := range o.listed {
		if !in[key] {
			flows = append(flows, heavy.Flow{Key: key, Count: o.Counts[key]})
		}
	}
	return flows
}

// Ways are the arrays as configured, for measurements that read them directly.
func (i *instance) Ways() *heavy.Ways { return &i.ways }
