package waits

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/waits"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// tickEvery is how often a live run empties the ring.
const tickEvery = 100_000_000 // ns

type event = bpf.WaitsWaitsReport

// instance is one configured monitor.
type instance struct {
	*config
	head   snapshot.Head
	set    *maps.Set
	counts *maps.Array
	ring   *maps.Ring
	owners [2]owners
	judged bool // an oracle compares found with the truth
	found  []row
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	return &instance{config: c, head: env.Head, owners: [2]owners{newOwners(), newOwners()}}, nil
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
	return maps.SetEntries(spec, "waits_reports", uint32(i.config.ring))
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return maps.NeedScale }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	i.set = set
	if i.counts, err = set.Array("waits_counts"); err != nil {
		return err
	}
	reports, err := set.Array("waits_reports")
	if err != nil {
		return err
	}
	i.ring, err = reports.Ring()
	return err
}

// IntervalNS implements algo.Controller.
func (i *instance) IntervalNS() int64 { return tickEvery }

// Rests implements algo.Rester.
func (i *instance) Rests() bool { return true }

// Tick implements algo.Controller: it empties the ring.
func (i *instance) Tick(int64) error { return i.poll() }

// NextTick implements algo.ReplayController: the ring of a replay holds 40,000 reports.
func (i *instance) NextTick(_, now int64) int64 { return now + 1_000_000_000 }

func (i *instance) poll() error {
	return i.ring.Drain(func(b []byte) {
		var e event
		if len(b) < int(unsafe.Sizeof(e)) {
			return
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), b)
		if e.Kind < kinds && e.End < 2 && e.Way < 2 {
			i.owners[e.Bank&1].take(i.config, &e)
		}
	})
}

// Read implements algo.Instance.
func (i *instance) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	s, err := i.take(w, bank)
	if err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	if i.judged {
		e, err := i.open(s)
		if err != nil {
			return nil, err
		}
		i.found = e.rows
	}
	return s, nil
}

func (i *instance) take(w report.Window, bank int) (*snapshot.Snapshot, error) {
	if err := i.poll(); err != nil {
		return nil, err
	}
	s := snapshot.New(i.head, w)
	var err error
	if s.Words[counterWords], err = i.counts.ReadReset(bank, nil); err != nil {
		return nil, err
	}
	if s.Words[delayWords], err = i.set.ReadReset("waits_delays", bank); err != nil {
		return nil, err
	}
	o := i.owners[bank]
	i.owners[bank] = newOwners()
	for way, name := range wordNames {
		words, err := i.set.ReadReset(name, bank)
		if err != nil {
			return nil, err
		}
		for n, word := range words {
			o.end(spot{way, n}, word)
		}
	}
	var beside [3][]uint64
	for n, name := range []string{"waits_missed", "waits_torn", "waits_crowd"} {
		if beside[n], err = i.set.ReadReset(name, bank); err != nil {
			return nil, err
		}
	}
	s.Words[waitWords], s.Words[unnamedWords] = o.words(i.config, beside[0], beside[1], beside[2]), snapshot.Words{o.lost}
	return s, nil
}
