package hhh

import (
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/constant"
	bpf "github.com/xdpmon/xdpmon/bpf/hhh"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

type instance struct {
	*config
	head   snapshot.Head
	stack  stack
	first  *maps.Array // of prefixes of 8 bits
	counts *maps.Array
	words  []uint64
	judged bool          // an oracle compares found with the truth
	found  []heavy.Heavy // in the last window, for the oracle
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	own := *c // its ways are bound to this instance's maps
	return &instance{config: &own, head: env.Head, stack: stack{config: &own}}, nil
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	constants := map[constant.Name]any{constant.HhhStacking: i.stacking, constant.HhhBytes: i.bytes, constant.HhhStep: uint32(i.step),
		constant.HhhLevels4: uint32(i.levels4), constant.HhhLevels6: uint32(i.levels6),
		constant.HhhWhole: i.whole, constant.HhhExact: uint32(i.exact), constant.HhhFirst6: uint32(i.first6())}
	if err := maps.SetConstants(spec, constants); err != nil {
		return err
	}
	if err := maps.SetEntries(spec, firstArray, uint32(i.firsts())); err != nil {
		return err
	}
	ways := i.ways
	if i.stacking {
		ways.Count, ways.Entries = 1, 1 // not used
	}
	if err := ways.Configure(spec); err != nil {
		return err
	}
	return i.stack.configure(spec)
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return 0 }

// RecirculationShare implements algo.Recirculator.
func (i *instance) RecirculationShare() float64 { return i.budget }

// RecirculationDelay implements algo.RecirculationDelayer.
func (i *instance) RecirculationDelay() int { return i.delay }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	if i.counts, err = set.Array("hhh_counts"); err != nil {
		return err
	}
	if i.stacking {
		return i.stack.bind(set)
	}
	if i.exact > 0 {
		if i.first, err = set.Array(firstArray); err != nil {
			return err
		}
	}
	return i.ways.Bind(set)
}

// counts by enum hhh_counter.
type counts []uint64

func (n counts) at(c bpf.HhhHhhCounter) uint64 { return n[c] }

// unmatched units: of packets whose prefix had no entry, taken to be as large as the others.
func (n counts) unmatched() float64 {
	packets := n.at(bpf.HhhHhhCounterHHH_PACKETS)
	if packets == 0 {
		return 0
	}
	return float64(n.units()) * max(0, 1-float64(n.at(bpf.HhhHhhCounterHHH_MATCHED))/float64(packets))
}

func (n counts) units() uint64 {
	return n.at(bpf.HhhHhhCounterHHH_IPV4) + n.at(bpf.HhhHhhCounterHHH_IPV6)
}

// Read implements algo.Instance.
func (i *instance) Read(w report.Window, bank int) (_ *snapshot.Snapshot, err error) {
	if i.words, err = i.counts.ReadReset(bank, i.words); err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	s := snapshot.New(i.head, w)
	s.Words[counterWords] = i.words
	if err := i.entries(s, bank); err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	if err := i.adapt(s, bank); err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	if i.judged {
		n, seen, err := i.open(s)
		if err != nil {
			return nil, err
		}
		i.found = i.heavy(n, seen)
	}
	return s, nil
}

// adapt chooses the initial value of the bank's next window.
func (i *instance) adapt(s *snapshot.Snapshot, bank int) error {
	if !i.ways.Adapts {
		return nil
	}
	r := s.Read()
	t, passes := heavy.TableOf(r), float64(counts(i.words).at(bpf.HhhHhhCounterHHH_WRITTEN))
	if err := r.Err(); err != nil {
		return err
	}
	return i.ways.Adapt(bank, t, passes, i.passes*time.Duration(s.Window.End-s.Window.Start).Seconds(), i.unitOfInitial())
}

// entries reads those of a bank into a snapshot, and resets them.
func (i *instance) entries(s *snapshot.Snapshot, bank int) error {
	if i.stacking {
		levels, err := i.stack.read(bank)
		if err == nil {
			levels.into(s)
		}
		return err
	}
	t, err := i.ways.Read(bank)
	if err != nil {
		return err
	}
	t.Unseen = i.ways.UnseenAmong(counts(s.Words[counterWords]).unmatched())
	t.Into(s)
	return i.readFirst(s, bank)
}

// seen is the arrays' content.
type seen struct {
	estimates map[heavy.Prefix]float64
	margins   map[heavy.Prefix]margin
	parts     map[heavy.Prefix]portion // whole: what the prefixes' counts consist of
	all       portion                  // ... and the table's
	records   int
	smallest  float64 // counter that a prefix without an entry competes with
}

// drawn reads entries of drawn prefixes.
func (c *config) drawn(t *heavy.Table, total counts) seen {
	s := seen{estimates: map[heavy.Prefix]float64{}, margins: map[heavy.Prefix]margin{}, records: t.Records, smallest: t.Minimum + float64(t.Initial)}
	for key, n := range t.Counts {
		draws := c.draws(c.ways.Spec.IsV4(key))
		p, estimate := c.prefixOf(key), n*draws
		g, noted := t.Guesses[key]
		if !noted {
			g = heavy.Unnoted(n+float64(t.Initial), s.smallest)
		}
		m := drawn(estimate, n+g.Admissions()*float64(t.Initial), g, draws, c.size(total))
		m.above += draws * t.Absent[key]
		s.estimates[p], s.margins[p] = estimate, m
	}
	return s
}

// size is the weight of a packet in the error of a sum: the mean of the squares of the packets' sizes over their mean, which
// is not known. It is at most that of a full packet, and where packets are small about twice their mean.
func (c *config) size(n counts) float64 {
	packets := n.at(bpf.HhhHhhCounterHHH_PACKETS)
	if !c.bytes || packets == 0 {
		return 1
	}
	mean := float64(n.units()) / float64(packets)
	return max(mean, min(fullPacket, 2*mean))
}

// Estimates are those of all prefixes with an entry, for measurements: it reads a bank and resets it.
func (i *instance) Estimates(bank int) (map[heavy.Prefix]float64, error) {
	words, err := i.counts.Read(bank, nil)
	if err != nil {
		return nil, fmt.Errorf("read estimates: %w", err)
	}
	s := snapshot.New(i.head, report.Window{})
	s.Words[counterWords] = words
	if err := i.entries(s, bank); err != nil {
		return nil, fmt.Errorf("read estimates: %w", err)
	}
	_, seen, err := i.open(s)
	return seen.estimates, err
}

// roots are counted exactly.
func (c *config) roots(estimates map[heavy.Prefix]float64, v4, v6 uint64) {
	for _, family := range []struct {
		v4    bool
		count uint64
	}{{true, v4}, {false, v6}} {
		delete(estimates, c.root(family.v4))
		if family.count > 0 {
			estimates[c.root(family.v4)] = float64(family.count)
		}
	}
}

func (c *config) unit() report.Unit {
	if c.bytes {
		return report.Bytes
	}
	return report.PacketUnit
}

// heavy prefixes of a window.
func (c *config) heavy(n counts, seen seen) []heavy.Heavy {
	return heavy.Hierarchical(seen.estimates, c.threshold*float64(n.units()))
}

func (c *config) body(n counts, seen seen) report.Body {
	passes := n.at(bpf.HhhHhhCounterHHH_WRITTEN)
	total := n.units()
	found := c.heavy(n, seen)
	t := c.table(found, total)
	c.enclose(&t)
	for row, h := range found[:len(t.Rows)] {
		t.Rows[row] = append(t.Rows[row], c.deviation(h, n, seen))
		bar := c.threshold * float64(total)
		for _, of := range []struct {
			value float64
			margin
		}{{h.Count, seen.margins[h.Prefix]}, {h.Conditioned, seen.conditioned(found, h.Prefix)}} {
			of.margin = of.nearby(h.Conditioned, bar, c.widened())
			t.Rows[row] = append(t.Rows[row], max(0, of.value-of.below), min(float64(total), of.value+of.above))
		}
	}
	return report.Body{
		Values: []report.Value{
			{Name: "total", Value: total, Unit: c.unit(), Kind: report.Counter, Help: "packets or bytes (hhh.count) of all prefixes"},
			{Name: "heavy", Value: len(found), Unit: report.Prefixes, Help: "prefixes above the threshold"},
			{Name: "recirculated", Value: passes, Unit: report.PacketUnit, Kind: report.Counter, Help: "packets that passed twice"},
			{Name: "recirculated_share", Value: share(float64(passes), n.at(bpf.HhhHhhCounterHHH_PACKETS)), Unit: report.Ratio, Help: "share of the counted packets that passed twice"},
			{Name: "entries_used", Value: seen.records, Unit: report.Count, Help: "entries that hold a prefix, on all CPUs"},
		},
		Tables: []report.Table{t},
	}.Answering("heavy")
}

// enclose adds the columns of errors and intervals.
func (c *config) enclose(t *report.Table) {
	t.Columns = append(t.Columns, report.Column{Name: "standard_error", Unit: c.unit(),
		Help: "standard error of the estimate: from drawing levels, and from what arrived before the prefix had an entry"})
	for n := range t.Columns {
		column := &t.Columns[n]
		if !column.Metric {
			continue
		}
		column.Low, column.High = column.Name+"_low", column.Name+"_high"
		t.Columns = append(t.Columns, report.Column{Name: column.Low, Unit: c.unit(), Help: "lower end of its 95 % interval"},
			report.Column{Name: column.High, Unit: c.unit(), Help: "upper end of its 95 % interval"})
	}
}

// deviation: of N packets each was counted with probability 1/draws, so draws times the count has the variance N (draws - 1);
// bytes arrive in packets of the mean size. The number of packets before the prefix was admitted is geometric, as in precision.
func (c *config) deviation(h heavy.Heavy, n counts, seen seen) float64 {
	v4 := h.Prefix.IsV4()
	switch {
	case c.isExact(h.Prefix):
		return 0
	case c.whole:
		return seen.parts[h.Prefix].deviation(seen.all)
	}
	smallest := seen.smallest
	if c.stacking {
		return min(h.Count, smallest)
	}
	size := 1.0
	if packets := n.at(bpf.HhhHhhCounterHHH_PACKETS); packets > 0 {
		size = float64(n.units()) / float64(packets)
	}
	return math.Hypot(math.Sqrt(h.Count*size*(c.draws(v4)-1)), min(h.Count, c.draws(v4)*smallest))
}

func share(part float64, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return part / float64(whole)
}

func (c *config) table(found []heavy.Heavy, total uint64) report.Table {
	amount := "packets"
	if c.bytes {
		amount = "bytes"
	}
	t := report.Table{Name: "prefixes", Title: "hierarchical heavy hitters", Limit: c.top, Help: "prefixes that are heavy by themselves",
		Columns: []report.Column{
			{Name: "prefix", Label: true, Help: "network; with both dimensions source > destination"},
			{Name: amount, Unit: c.unit(), Metric: true, Rate: true, Help: "all of the prefix, estimated"},
			{Name: "conditioned", Unit: c.unit(), Metric: true, Help: "without what the heavy prefixes below it explain"},
			{Name: "share", Unit: report.Ratio, Help: "conditioned count, as a share of all"},
		}}
	for _, h := range found[:min(c.top, len(found))] {
		t.Rows = append(t.Rows, c.row(h, total))
	}
	return t
}

func (c *config) row(h heavy.Heavy, total uint64) []any {
	return []any{h.Prefix.String(), h.Count, h.Conditioned, share(h.Conditioned, total)}
}
