package conquest

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// How often the ring is emptied, ns: live, and of a capture's time.
const (
	pollEvery   = 100_000_000
	replayEvery = 250_000_000
)

type instance struct {
	*config
	env     algo.Env
	head    snapshot.Head
	counts  *maps.Array
	ring    *maps.Ring
	words   []uint64
	history *history
}

// New implements algo.Config. The interface after the queue is this host's.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	own := *c
	if err := errors.Join(own.tapsOf(env.Interfaces), own.findEgress(own.values)); err != nil {
		return nil, err
	}
	return &instance{config: &own, env: env, head: env.Head, history: newHistory()}, nil
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error { return i.configure(spec) }

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need {
	switch {
	case i.source == sourceTap:
		return maps.NeedBegin
	case i.live():
		return maps.NeedQueue
	}
	return 0
}

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	if text := i.chosenText(); text != "" {
		i.env.Notify("%s", text)
	}
	for _, text := range []string{i.starves(), i.blind()} {
		if text != "" {
			i.env.Notify("%s", text)
		}
	}
	if i.counts, err = set.Array("conquest_counts"); err != nil {
		return err
	}
	events, err := set.Array("conquest_events")
	if err != nil {
		return err
	}
	i.ring, err = maps.NewRing(events.Map())
	return err
}

// IntervalNS implements algo.Controller.
func (i *instance) IntervalNS() int64 { return pollEvery }

// NextTick implements algo.ReplayController.
func (i *instance) NextTick(_, now int64) int64 { return now + replayEvery }

// Tick implements algo.Controller: it empties the ring.
func (i *instance) Tick(int64) error {
	return i.ring.Drain(func(b []byte) {
		var e event
		if len(b) >= int(unsafe.Sizeof(e)) {
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), b)
			i.history.record(i.config, &e)
		}
	})
}

// Read implements algo.Instance.
func (i *instance) Read(w report.Window, bank int) (_ *snapshot.Snapshot, err error) {
	if i.words, err = i.counts.ReadReset(bank, i.words); err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	if err := i.Tick(w.End); err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	i.history.idle(w.End, i.longest)
	s := snapshot.New(i.head, w)
	s.Words[counterWords] = i.words
	i.history.take().into(s)
	return s, nil
}

// Report implements algo.Config.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	n, h, err := opened(s)
	if err != nil {
		return algo.Result{}, err
	}
	return algo.Result{Body: c.body(counts(n), h, s.Offset), Used: counts(n).used(), Lost: counts(n).lost(h)}, nil
}

// counts are the program's counters.
type counts []uint64

// Fates of packets: enum conquest_fate.
const (
	fateLeft = iota
	fateUnmatched
	fateWaits
	fateBlocked
	fateAgain
	fateExpired
	fateDropped
	fates
)

func (n counts) at(counter bpf.ConquestConquestCounter) uint64 { return n[counter] }

func (n counts) fate(f int) uint64 { return n[int(bpf.ConquestConquestCounterCONQUEST_FATE)+f] }

func (n counts) used() (sum uint64) {
	for f := range fates {
		sum += n.fate(f)
	}
	return sum
}

// departures are packets that left the queue.
func (n counts) departures() uint64 { return n.fate(fateLeft) + n.fate(fateUnmatched) }

func (n counts) lost(h *history) map[string]uint64 {
	return map[string]uint64{
		"unmatched": n.fate(fateUnmatched),
		"blocked":   n.fate(fateBlocked),
		"repeated":  n.fate(fateAgain),
		"raced":     n.at(bpf.ConquestConquestCounterCONQUEST_RACED),
		"late":      n.at(bpf.ConquestConquestCounterCONQUEST_LATE),
		"reports":   n.at(bpf.ConquestConquestCounterCONQUEST_LOST),
		"unlisted":  h.unlisted,
	}
}
