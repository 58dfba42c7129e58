package reorder

import (
	"fmt"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/reorder"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// pollEvery is how often the ring is drained, in a replay by the packets' time: 1 MiB holds 32,768 reports, so 320,000 a second.
const pollEvery = 100_000_000 // ns

// instance is one configured monitor.
type instance struct {
	*config
	head    snapshot.Head
	set     *maps.Set
	ring    *maps.Ring
	pending [2]flows // by bank: reports that were read before their window ended

	judged bool            // an oracle compares last with the truth
	last   map[uint64]*sum // prefixes that were reported last, for the oracle
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	return &instance{config: c, head: env.Head, pending: [2]flows{{}, {}}}, nil
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	if err := maps.SetConstants(spec, i.constants()); err != nil {
		return err
	}
	for part, suffix := range parts {
		for _, name := range bucketArrays {
			if err := maps.SetEntries(spec, name+suffix, uint32(i.entries(part))); err != nil {
				return err
			}
		}
	}
	return maps.SetEntries(spec, "reorder_reports", uint32(i.config.ring))
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return 0 }

// RecirculationShare implements algo.Recirculator.
func (i *instance) RecirculationShare() float64 { return i.recirculate }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) error {
	i.set = set
	reports, err := set.Array("reorder_reports")
	if err != nil {
		return err
	}
	i.ring, err = reports.Ring()
	return err
}

// IntervalNS implements algo.Controller.
func (i *instance) IntervalNS() int64 { return pollEvery }

// Rests implements algo.Rester.
func (i *instance) Rests() bool { return true }

// Tick implements algo.Controller: it empties the ring.
func (i *instance) Tick(int64) error { return i.poll() }

// NextTick implements algo.ReplayController: a replay drains the ring as often as a live run, so it loses the same reports.
func (i *instance) NextTick(start, now int64) int64 {
	return start + (max(now-start, 0)/pollEvery+1)*pollEvery
}

// poll drains the ring and adds each report to its window.
func (i *instance) poll() error {
	var words []uint64
	return i.ring.Drain(func(b []byte) {
		if words = maps.Words(b, words); len(words) == 3 {
			i.pending[words[2]>>32&1].add(record{prefix: words[0], signature: uint32(words[1]),
				n: words[1] >> 32, o: words[2] & 0xffffffff})
		}
	})
}

// Read implements algo.Instance: it returns the reports of the window, and the records still in memory.
func (i *instance) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	s, err := i.take(w, bank)
	if err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	if i.judged {
		_, t, err := i.open(s)
		if err != nil {
			return nil, err
		}
		i.last = t.output()
	}
	return s, nil
}

func (i *instance) take(w report.Window, bank int) (*snapshot.Snapshot, error) {
	c, err := i.set.ReadReset("reorder_counts", bank)
	if err != nil {
		return nil, err
	}
	if err := i.poll(); err != nil {
		return nil, err
	}
	f := i.pending[bank]
	i.pending[bank] = flows{}
	torn, err := i.scan(f, bank)
	if err != nil {
		return nil, err
	}
	s := snapshot.New(i.head, w)
	s.Words[counterWords], s.Words[tornWords], s.Words[flowWords] = c, snapshot.Words{torn}, f.words()
	return s, nil
}

// scan adds the records left in the closed bank (section 3), and returns the number of torn records: those with words of two
// flows.
func (i *instance) scan(f flows, bank int) (torn uint64, err error) {
	for part, suffix := range parts {
		if !i.used(part) {
			continue
		}
		var words [4][]uint64
		for n, name := range bucketArrays {
			if words[n], err = i.set.ReadReset(name+suffix, bank); err != nil {
				return 0, err
			}
		}
		for e, id := range words[0] {
			r, ok := i.recordOf(id, words[1][e], words[2][e], words[3][e])
			switch {
			case !ok:
				torn++
			case i.worth(r, part < maxWays):
				f.add(r)
			}
		}
	}
	return torn, nil
}

// recordOf reads a record's words; ok is false when they are not of one flow. An empty record has n = 0.
func (c *config) recordOf(id, prefix, seq, count uint64) (r record, ok bool) {
	if id == 0 {
		return r, true
	}
	r = record{prefix: prefix & (1<<48 - 1), signature: uint32(id >> 32), n: count & 0xffffff, o: seq >> 32 & 0xffffff}
	tag, done := uint64(r.signature&0xff), uint64(0)
	if r.o >= uint64(c.enough) {
		done = 1
	}
	return r, prefix>>48 == uint64(r.signature&0xffff) && seq>>56 == tag && count>>24 == uint64(r.signature>>25)<<1|done
}

// counts are the data plane's counters of a window.
type counts []uint64

func (c counts) at(n bpf.ReorderReorderCounter) uint64 { return c[n] }

func (c counts) lost(torn uint64) map[string]uint64 {
	wanted, second := c.at(bpf.ReorderReorderCounterREORDER_WANTED), c.at(bpf.ReorderReorderCounterREORDER_SECOND)
	return map[string]uint64{
		"reports":       c.at(bpf.ReorderReorderCounterREORDER_REPORTS_LOST),
		"torn":          c.at(bpf.ReorderReorderCounterREORDER_TORN) + torn,
		"recirculation": wanted - min(second, wanted),
		"not_watched":   c.at(bpf.ReorderReorderCounterREORDER_PACKETS) - min(c.at(bpf.ReorderReorderCounterREORDER_PACKETS), c.at(bpf.ReorderReorderCounterREORDER_COMPARED)),
	}
}
