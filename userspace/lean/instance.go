package lean

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/limit"
	"github.com/xdpmon/xdpmon/userspace/lean/rates"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// tickEvery is how often a live run empties the ring.
const tickEvery = 100_000_000 // ns

// leastStep is the shortest interval between a replay's ticks once the load is known: each tick costs some ten milliseconds.
const leastStep = 1_000_000_000 // ns

type event = bpf.LeanLeanReport

// candidate is a flow that the data plane has reported.
type candidate struct {
	at    place
	value float64 // of the event that reached the limit; 0: unknown
}

// candidates of one statistic.
type candidates map[heavy.Key]candidate

// named are the candidates of one window.
type named [stats]candidates

// instance is one configured monitor.
type instance struct {
	*config
	head     snapshot.Head
	seed     uint64
	set      *maps.Set
	counts   *maps.Array
	words    []uint64 // buffer for reading counts while a window runs
	ring     *maps.Ring
	shifts   *maps.Array
	given    []uint64 // last written contents of shifts
	limiters [stats]*limit.Limiter
	pending  [2]named
	owners   [2][stats]rates.Owners // by rate
	slow     rates.Threshold        // ... of latency
	slowest  *maps.Array
	bank     int                // that the data plane writes to
	later    bool               // at least one window has ended: the load is known
	judged   bool               // an oracle compares found with the truth
	found    [stats][]heavy.Key // listed in the last window, for the oracle
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	i := &instance{config: c.own(), head: env.Head, seed: env.Seed}
	for s := range stats {
		i.limiters[s] = c.limiter(s)
	}
	i.pending = [2]named{newNamed(), newNamed()}
	if i.rate {
		i.slow.Slots = max(i.layouts[latency].tables[rateSums], 1)
	}
	return i, nil
}

// own copies the configuration, so that p can follow the load of this instance alone.
func (c *config) own() *config {
	own := *c
	if l := c.latency(); l != nil {
		mine, odds := *l, *l.chance
		mine.chance = &odds
		own.statistics[latency] = &mine
	}
	return &own
}

func newNamed() (n named) {
	for s := range n {
		n[s] = candidates{}
	}
	return n
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	if err := maps.SetConstants(spec, i.constants()); err != nil {
		return err
	}
	for name, n := range i.sizes() {
		if err := maps.SetEntries(spec, name, uint32(n)); err != nil {
			return err
		}
	}
	return maps.SetEntries(spec, "lean_reports", uint32(i.config.ring))
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need {
	if l, ok := i.statistics[loss].(*losses); ok && l.id == int(bpf.LeanLossIdKindLOSS_RTP) {
		return maps.NeedRTP
	}
	return 0
}

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	i.set, i.given = set, nil
	if i.counts, err = set.Array("lean_counts"); err != nil {
		return err
	}
	if i.shifts, err = set.Array("lean_shift"); err != nil {
		return err
	}
	reports, err := set.Array("lean_reports")
	if err != nil {
		return err
	}
	if i.ring, err = reports.Ring(); err != nil {
		return err
	}
	if l := i.latency(); l != nil {
		if err := l.chance.bind(set, i.layouts[latency].tables["lean_lat_fr"]); err != nil {
			return err
		}
	}
	if i.slowest, err = set.Array("lean_slow"); err != nil {
		return err
	}
	if err := i.slowest.Write(0, []uint64{uint64(i.slow.Ticks)}); err != nil {
		return err
	}
	return i.publish()
}

// latency is the statistic that follows the load; nil when it is off.
func (c *config) latency() *latencies {
	l, _ := c.statistics[latency].(*latencies)
	return l
}

// publish writes changed limits to the map that the data plane reads.
func (i *instance) publish() error {
	words := make([]uint64, stats)
	for s := range words {
		words[s] = uint64(i.limiters[s].Shift())
	}
	if slices.Equal(words, i.given) {
		return nil
	}
	i.given = words
	return i.shifts.Write(0, words)
}

// IntervalNS implements algo.Controller.
func (i *instance) IntervalNS() int64 { return tickEvery }

// Begin implements algo.WindowOpener.
func (i *instance) Begin(bank int) { i.bank = bank }

// Rests implements algo.Rester.
func (i *instance) Rests() bool { return true }

// Tick implements algo.Controller: it empties the ring, and limits and p follow the load.
func (i *instance) Tick(now int64) error {
	if err := i.poll(); err != nil {
		return err
	}
	for _, s := range i.on {
		i.limiters[s].During(len(i.pending[i.bank][s]))
	}
	if err := i.publish(); err != nil {
		return err
	}
	return i.follow(now)
}

func (i *instance) follow(now int64) (err error) {
	if i.latency() == nil {
		return nil
	}
	if i.words, err = i.counts.Read(i.bank, i.words); err != nil {
		return err
	}
	if err := i.requests(now, counts(i.words), false); err != nil {
		return err
	}
	return i.followSlow(counts(i.words), false)
}

func (i *instance) requests(now int64, n counts, closed bool) error {
	l := i.latency()
	if l == nil {
		return nil
	}
	return l.chance.follow(now, load{n.at(bpf.LeanLeanCounterLEAN_REQUESTS), n.at(bpf.LeanLeanCounterLEAN_INSERTED)}, closed)
}

// NextTick implements algo.ReplayController. In the first window a replay reads the load after a thousandth of the window and then
// at doubling intervals; from then on every 32nd of a window, at most once a second, because the weights of delays follow the
// current load.
func (i *instance) NextTick(start, now int64) int64 {
	next, step := i.windowNS/1024, max(i.windowNS/32, leastStep)
	if i.later {
		next = step
	}
	for next < step && start+next <= now {
		next *= 2
	}
	if next < step {
		return start + next
	}
	return start + (max(now-start, 0)/step+1)*step
}

// poll drains the ring and adds each report to its window.
func (i *instance) poll() error {
	return i.ring.Drain(func(b []byte) {
		var e event
		if i.rate {
			i.takes(b)
			return
		}
		if len(b) < int(unsafe.Sizeof(e)) {
			return
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), b)
		if key, ok := i.keyOf(&e); ok && e.Stat < uint8(stats) {
			i.pending[e.Bank&1][e.Stat][key] = candidate{place{Rows: e.At.Rows, Rest: e.At.Rest}, float64(int64(e.Value))}
		}
	})
}

// keyOf is the key of a reported flow.
func (i *instance) keyOf(e *event) (heavy.Key, bool) {
	p := packet.Packet{Valid: packet.IP | packet.Ports, Src: heavy.Address(e.Src, e.Family), Dst: heavy.Address(e.Dst, e.Family),
		SrcPort: e.Sport, DstPort: e.Dport, Proto: e.Proto}
	return i.spec.Of(&p)
}

// Read implements algo.Instance: it returns the sketches and the reported flows, and chooses limits and p of the next window.
func (i *instance) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	s, err := i.take(w, bank)
	if err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	if !i.judged {
		return s, nil
	}
	e, n, err := i.open(s)
	if err != nil {
		return nil, err
	}
	for _, s := range i.on {
		i.found[s] = i.found[s][:0]
		if i.rate {
			for _, f := range i.measure(s, n).List(e.rated[s]) {
				i.found[s] = append(i.found[s], f.Key)
			}
			i.found[s] = i.found[s][:min(len(i.found[s]), i.top)]
			continue
		}
		for _, f := range i.listed(e.decode(s, e.named[s], n)) {
			i.found[s] = append(i.found[s], f.key)
		}
	}
	return s, nil
}

func (i *instance) take(w report.Window, bank int) (*snapshot.Snapshot, error) {
	if err := i.poll(); err != nil {
		return nil, err
	}
	words, err := i.counts.ReadReset(bank, nil)
	if err != nil {
		return nil, err
	}
	n, named := counts(words), i.pending[bank]
	i.pending[bank] = newNamed()
	if i.buckets > 0 {
		if named[i.on[0]], err = i.nameless(bank); err != nil {
			return nil, err
		}
	}
	s := snapshot.New(i.head, w)
	s.Words[counterWords] = words
	s.Words[limitWords] = snapshot.Floats(i.limitsOf(n))
	if l := i.latency(); l != nil {
		s.Words[chanceWords] = snapshot.Floats([]float64{l.chance.p, l.chance.p, l.chance.rate})
	}
	if i.rate {
		err = i.ratesInto(s, bank, n)
	} else {
		for _, st := range i.on {
			s.Words[namedWords+st.String()] = named[st].words()
		}
		err = i.registersInto(s, bank)
	}
	if err != nil {
		return nil, err
	}
	i.bank, i.later = 1-bank, true
	for _, st := range i.on {
		i.limiters[st].After(len(named[st]))
	}
	if err := i.requests(w.End, n, true); err != nil {
		return nil, err
	}
	if err := i.followSlow(n, true); err != nil {
		return nil, err
	}
	return s, i.publish()
}

// limitsOf are the limits that were in force at the end of the window, in the sketch's unit.
func (i *instance) limitsOf(n counts) []float64 {
	limits := make([]float64, stats)
	for _, s := range i.on {
		limits[s] = max(1, math.Floor(math.Ldexp(float64(n.total(s)), -i.limiters[s].Shift())))
	}
	return limits
}

// registersInto reads the registers into the snapshot, and resets sums and filters.
func (i *instance) registersInto(s *snapshot.Snapshot, bank int) error {
	sketches, others := i.arrays()
	for _, name := range sketches {
		words, err := i.set.ReadReset(name, bank)
		if err != nil {
			return err
		}
		s.Words[name] = sketch.Extended(words)
	}
	for _, name := range others {
		words, err := i.set.ReadReset(name, bank)
		if err != nil {
			return err
		}
		s.Words[name] = words
	}
	for _, st := range i.on {
		for _, name := range append(filterNames(registers[st]), registers[st]+"_sum") {
			if _, err := i.set.ReadReset(name, bank); err != nil {
				return err
			}
		}
	}
	return nil
}

// counts are the data plane's counters of a window.
type counts []uint64

func (c counts) at(n bpf.LeanLeanCounter) uint64 { return c[n] }

// of reads a counter that exists once for each statistic.
func (c counts) of(n bpf.LeanLeanCounter, s stat) uint64 { return c[int(n)+int(s)] }

// total of the values that a statistic has added, less those that it has subtracted again (late packets that filled a gap).
func (c counts) total(s stat) int64 { return max(0, int64(c.of(bpf.LeanLeanCounterLEAN_TOTAL, s))) }
