package carpe

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/maps/prefix"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

type instance struct {
	*config
	head   snapshot.Head
	replay bool
	number func() uint64 // returns the number of the window that begins now
	epoch  uint64

	counts, heard, table *maps.Array
	ring                 *maps.Ring
	prefixes             *prefix.Table
	words                []uint64
	entered              [][]uint64 // what the arrays held at the last window's end
	idle                 [][]uint8
	arrays               []*maps.Array
	expired, peak        uint64
	windowNS             int64
	begun                int64 // the window's first tick; 0: there was none yet
	looked               int   // sweeps since then

	ledger      *ledger
	handed      handed
	known       known
	coordinated bool // there is a coordinator
	writer      writer
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	i := &instance{config: c, head: env.Head, replay: env.Replay, number: env.Epoch, windowNS: env.WindowNS, ledger: newLedger(c), writer: writer{config: c}}
	i.known, i.handed = newKnown(c), newHanded(c, env)
	if i.number == nil {
		next := uint64(c.span)
		i.number = func() uint64 { next++; return next }
	}
	return i, nil
}

// pollEvery is how often the ring is drained, ns; the ring holds the events of that time.
const (
	pollEvery  = 100_000_000
	liveRing   = 1 << 20
	replayRing = 1 << 24
	heardSlots = 4096
)

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	sizes := map[string]uint32{"carpe_d0": uint32(i.entries), "carpe_d1": 1, "carpe_d2": 1, "carpe_groups": uint32(i.groups) + 1, "carpe_heard": heardSlots,
		"carpe_events": liveRing}
	for way := 1; way < i.ways; way++ {
		sizes[fmt.Sprintf("carpe_d%d", way)] = uint32(i.entries)
	}
	if i.replay {
		sizes["carpe_events"] = replayRing
	}
	for name, n := range sizes {
		if err := maps.SetEntries(spec, name, n); err != nil {
			return err
		}
	}
	if err := prefix.Size(spec, "carpe_prefixes", wordsOfGroup*i.groups); err != nil {
		return err
	}
	return maps.SetConstants(spec, map[constant.Name]any{constant.KeyFields: uint32(i.spec.Fields), constant.KeyFamily: uint32(i.spec.Family), constant.KeyWords: uint32(i.spec.Words()),
		constant.KeyTagged: i.spec.Family != heavy.IPv4 || i.spec.Words() != 1, constant.CarpeWays: uint32(i.ways), constant.CarpeBytes: i.bytes, constant.CarpeHandover: i.handover,
		constant.CarpeChance: uint64(1<<32) / uint64(i.start), constant.CarpeStart: i.start, constant.CarpeLeast: i.tau(i.most),
		constant.CarpeSrc4: mask32(i.group.src4), constant.CarpeDst4: mask32(i.group.dst4), constant.CarpeSrc6: mask64(i.group.src6), constant.CarpeDst6: mask64(i.group.dst6)})
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return 0 }

// Bind implements algo.Instance. Entries of an earlier run stay valid; groups are requested again.
func (i *instance) Bind(set *maps.Set) (err error) {
	for name, a := range map[string]**maps.Array{"carpe_counts": &i.counts, "carpe_heard": &i.heard, "carpe_groups": &i.table} {
		if *a, err = set.Array(name); err != nil {
			return err
		}
	}
	i.arrays = nil
	for way := range i.ways {
		a, err := set.Array(fmt.Sprintf("carpe_d%d", way))
		if err != nil {
			return err
		}
		i.arrays = append(i.arrays, a)
	}
	i.entered, i.idle = make([][]uint64, i.ways), make([][]uint8, i.ways)
	events, err := set.Array("carpe_events")
	if err != nil {
		return err
	}
	if i.ring, err = events.Ring(); err != nil {
		return err
	}
	if i.prefixes, err = prefix.Open(set, "carpe_prefixes"); err != nil {
		return err
	}
	i.epoch = i.number()
	if err := i.heard.Reset(0); err != nil {
		return err
	}
	return i.write()
}

// IntervalNS implements algo.Controller.
func (i *instance) IntervalNS() int64 { return pollEvery }

// Tick implements algo.Controller.
func (i *instance) Tick(now int64) error { return errors.Join(i.poll(), i.look(now)) }

// poll drains the ring.
func (i *instance) poll() error {
	var e bpf.CarpeCarpeEvent
	return i.ring.Drain(func(record []byte) {
		if _, err := binary.Decode(record, binary.NativeEndian, &e); err != nil {
			return // the ring holds nothing else
		}
		i.take(&e)
	})
}

func (i *instance) take(e *bpf.CarpeCarpeEvent) {
	k := i.spec.Clean(e.Key)
	switch bpf.CarpeCarpeKind(e.Kind) {
	case bpf.CarpeCarpeKindCARPE_REPORT:
		i.report(k, e.Units, e.Observers)
	case bpf.CarpeCarpeKindCARPE_GROUP:
		i.known.met(i.config.group.of(i.spec, k))
	case bpf.CarpeCarpeKindCARPE_HANDED:
		if units := i.handed.add(k, e.Units, e.Observers); units > 0 {
			i.report(k, units, e.Observers)
		}
	}
}

// report adds a bundle to the next message to the coordinator or, without one, to this host's own answer.
func (i *instance) report(k heavy.Key, units, observers uint32) {
	if i.coordinated {
		i.writer.report(k, units, observers)
		return
	}
	i.ledger.add(k, i.epoch, i.one(units, observers))
}

// Read implements algo.Instance.
func (i *instance) Read(w report.Window, bank int) (_ *snapshot.Snapshot, err error) {
	if err := i.poll(); err != nil {
		return nil, err
	}
	if i.words, err = i.counts.ReadReset(bank, i.words); err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	look := i.count
	if i.whole(w) {
		look = i.sweep
	}
	entries, err := look()
	if err != nil {
		return nil, err
	}
	s := snapshot.New(i.head, w)
	s.Words["counters"] = i.words
	flows := i.ledger.window(i.epoch)
	flowsInto(s, flows)
	s.Words["state"] = []uint64{entries, i.expired, uint64(len(i.known.groups)), i.known.full, i.handed.full, i.ledger.full, flag(i.coordinated), i.handed.reports, i.peak}
	i.expired, i.peak, i.known.full, i.handed.full, i.handed.reports, i.ledger.full = 0, 0, 0, 0, 0, 0
	i.next()
	return s, i.age()
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// next starts the next window: later reports belong to it.
func (i *instance) next() {
	i.writer.end()
	i.epoch = i.number()
	i.writer.epoch = i.epoch
	i.begun = 0
}
