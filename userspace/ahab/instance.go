package ahab

import (
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/ahab"
	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/ahab/control"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// actions are what can be done to a packet: enum ahab_deed.
const actions = int(bpf.AhabAhabDeedAHAB_DEEDS)

type instance struct {
	*config
	head            snapshot.Head
	replay          bool
	arrays          map[string]*maps.Array
	words           map[string][]uint64
	before          map[string][]uint64 // what the free-running counts were at the last window's end
	noted           map[string][]uint64 // ... and at the end of the one that is read next; nil: as they are then
	ring            *maps.Ring
	seen            people
	pairs           map[int]*pair // by slice
	now             int64         // of the last tick
	notify          func(format string, args ...any)
	sliceController        // with a file of slices
	share           uint64 // of packets above the limit that are sampled, in 2^-16
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	if c.pace && env.Arrives {
		return nil, c.values.Error("act", "packets that arrive cannot wait: --direction egress (an agent's instance: direction: egress), or ahab.act=drop")
	}
	own, err := c.full()
	if err != nil {
		return nil, err
	}
	return &instance{config: own, head: env.Head, replay: env.Replay, notify: env.Notify, arrays: map[string]*maps.Array{},
		words: map[string][]uint64{}, before: map[string][]uint64{}, seen: people{}, pairs: map[int]*pair{}, share: allSamples}, nil
}

// perSlice are the arrays with an element a slice.
var perSlice = []string{"ahab_slices", "ahab_offered", "ahab_epochs", "ahab_weyl", "ahab_limit", "ahab_low", "ahab_mid", "ahab_high", "ahab_over", "ahab_bound", "ahab_dropped", "ahab_refused",
	"ahab_passed", "ahab_lost", "ahab_marked", "ahab_mark_bytes"}

// The ring of samples is emptied every 10 ms, and in a replay at the end of a window.
const (
	liveRing   = 1 << 18
	replayRing = 1 << 22
)

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	sizes := map[string]uint32{"ahab_row0": uint32(i.columns), "ahab_row1": uint32(i.columns), "ahab_row2": uint32(i.columns),
		"ahab_countdown": uint32(i.flows), "ahab_samples": liveRing}
	for _, name := range perSlice {
		sizes[name] = i.entries()
	}
	if i.replay {
		sizes["ahab_samples"] = replayRing
	}
	unused := []string{"ahab_mid", "ahab_over"} // two sums share a word
	if i.pace {
		sizes["ahab_depart"], sizes["ahab_waiting"] = uint32(i.flows), uint32(i.flows)
		unused = append(unused, "ahab_countdown")
	}
	if i.table {
		unused = []string{"ahab_marked", "ahab_mark_bytes", "ahab_bound", "ahab_refused"} // nothing is marked, and no ceiling bounds
	}
	for _, name := range unused {
		sizes[name] = 1
	}
	for name, n := range sizes {
		if err := maps.SetEntries(spec, name, n); err != nil {
			return err
		}
	}
	if err := maps.SetConstants(spec, i.constants()); err != nil {
		return err
	}
	return i.sizeMembers(spec)
}

// constants of the data plane.
func (c *config) constants() map[constant.Name]any {
	moves := uint32(bpf.AhabAhabMovesAHAB_INTERPOLATE)
	if c.aimd {
		moves = uint32(bpf.AhabAhabMovesAHAB_AIMD)
	}
	return map[constant.Name]any{
		constant.LpfShift:       tickShift(c.tau),
		constant.AhabEpoch:      uint32(c.epoch >> 10),
		constant.AhabUnit:       uint32(c.tau.Seconds() * (1 << 20)),
		constant.AhabGrace:      uint32(c.grace),
		constant.AhabDry:        c.dry,
		constant.AhabBurst:      uint64(c.tolerance()),
		constant.AhabPace:       c.pace,
		constant.AhabTau:        uint64(c.tau),
		constant.AhabGrid:       c.grid(),
		constant.AhabRooted:     c.path != "",
		constant.AhabTable:      c.table,
		constant.AhabUpdate:     moves,
		constant.AhabEverything: c.everything,
	}
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return 0 }

// RecirculationShare implements algo.Recirculator: of a slice that sends a packet in an epoch, every packet writes a limit.
func (i *instance) RecirculationShare() float64 { return 1 }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	if text := i.timesText(); text != "" {
		i.notify("%s", text)
	}
	for _, name := range append([]string{"ahab_counts", "ahab_row0", "ahab_row1", "ahab_row2", "ahab_ratio", "ahab_move",
		"lpf_decay", "ahab_lease", "ahab_samples"}, perSlice...) {
		if i.arrays[name], err = set.Array(name); err != nil {
			return err
		}
	}
	if i.ring, err = i.arrays["ahab_samples"].Ring(); err != nil {
		return err
	}
	shares, moves := ratioTables()
	for name, words := range map[string][]uint64{"lpf_decay": decayTable(i.tau), "ahab_ratio": shares, "ahab_move": moves} {
		if err := i.arrays[name].Write(0, words); err != nil {
			return err
		}
	}
	for n := range i.slices {
		if err := i.bindSlice(uint32(n)); err != nil {
			return fmt.Errorf("bind slice %s: %w", i.slices[n].name, err)
		}
	}
	if err := i.bindSteer(set); err != nil {
		return err
	}
	for _, name := range freeRunning {
		if i.before[name], err = i.free(name); err != nil {
			return err
		}
	}
	if i.replay {
		return i.renew(math.MaxInt64)
	}
	return i.renew(hostclock.Now() + int64(max(i.held(), starting)))
}

// starting is how long limits hold from binding to the first tick. Attaching takes longer than a lease on a busy host, and a lease that has run out by
// then lets a slice of 20 Mbit/s pass 50 Mbit in its first tenth of a second.
const starting = 5 * time.Second

// bindSlice gives a slice its capacity, and the highest limit to begin with.
func (i *instance) bindSlice(n uint32) error {
	s := i.slices[n]
	ceiling := uint32(full)
	if err := i.arrays["ahab_slices"].SetElement(n, i.element(int(n), s.capacity, ceiling)); err != nil {
		return err
	}
	limit := ceiling
	if most := i.units(int(n)).Limit(2 * float64(s.capacity)); s.capacity > 0 {
		limit = uint32(min(float64(ceiling), most))
	}
	return i.arrays["ahab_limit"].SetElement(n, limit)
}

// element is struct ahab_slice.
func (i *instance) element(n int, capacity uint64, ceiling uint32) *bpf.AhabAhabSlice {
	spacing := uint32(i.spacing)
	if spacing == 0 {
		spacing = uint32(control.Spacing(float64(capacity) / 2))
	}
	return &bpf.AhabAhabSlice{Capacity: capacity, Spacing: spacing, Ceiling: i.ceiling(n, capacity, ceiling), Norm: i.norm(n), User: i.slices[n].user,
		Budget: i.budget(capacity), Bound: i.bound(n)}
}

// bound is what a byte costs of a slice's ceiling, ns in 2^-20, rounded up: bpf/include/gcra.h. 0: no ceiling.
func (c *config) bound(n int) uint64 {
	if c.table || c.slices[n].ceiling == 0 {
		return 0
	}
	return uint64(math.Ceil(1e9 * (1 << gcraShift) / c.slices[n].ceiling))
}

// gcraShift is GCRA_SHIFT.
const gcraShift = 20

// ceiling is the largest limit: that of a user with twice the capacity in the table form, where no limit is calculated from the capacity, and most elsewhere.
func (c *config) ceiling(n int, capacity uint64, most uint32) uint32 {
	if !c.table {
		return most
	}
	return uint32(min(float64(most), max(16, c.units(n).Limit(2*float64(capacity)))))
}

// budget is what a slice may send in an epoch of the table form, 2^-4 bytes.
func (c *config) budget(capacity uint64) uint32 {
	return uint32(min(1<<29, float64(capacity)*gridEpoch.Seconds()*(1<<lengthShift)))
}

// gridEpoch is an epoch of the table form.
const gridEpoch = 1 << 20 * time.Nanosecond

// renew lets limits hold until then.
func (i *instance) renew(until int64) error {
	lease := bpf.AhabAhabLeaseT{Until: uint64(until), Samples: i.share}
	if err := i.arrays["ahab_lease"].SetElement(0, &lease); err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	return nil
}

// interval of the control loop; atRest where nobody is limited, and samples are all that there is to take.
const (
	interval = 10 * time.Millisecond
	atRest   = 10 * interval
)

// IntervalNS implements algo.Controller.
func (i *instance) IntervalNS() int64 {
	if i.path == "" && i.slices[1].capacity == 0 {
		return int64(atRest)
	}
	return int64(interval)
}

// Tick implements algo.Controller: limits hold for a lease more.
func (i *instance) Tick(now int64) error {
	i.now = now
	if err := i.drain(); err != nil {
		return err
	}
	if err := i.controlled(now); err != nil {
		return err
	}
	return i.renew(now + int64(i.held()))
}

// freeRunning are counts that never go back.
var freeRunning = []string{"ahab_offered", "ahab_dropped", "ahab_refused"}

// free reads a count that never decreases. What arrived since the last limit is still in the sums.
func (i *instance) free(name string) ([]uint64, error) {
	words, err := i.arrays[name].Read(0, nil)
	if err != nil || name != "ahab_offered" {
		return words, err
	}
	sums := make([]uint64, len(words))
	for _, name := range []string{"ahab_low", "ahab_mid", "ahab_high", "ahab_over"} {
		part, err := i.arrays[name].Read(0, nil)
		if err != nil {
			return nil, err
		}
		for n, p := range part {
			if sums[n] += p&0xffffffff + p>>32; i.pace && name == "ahab_high" { // the exact form has two in a word; the lower one counts users
				sums[n] -= p & 0xffffffff
			}
		}
	}
	for n := range words {
		words[n] += sums[n] >> lengthShift
	}
	return words, nil
}

// Closing implements algo.WindowCloser: what arrived and was dropped until the bank is closed, which is read some milliseconds later.
func (i *instance) Closing() error {
	noted := map[string][]uint64{}
	for _, name := range freeRunning {
		words, err := i.free(name)
		if err != nil {
			return fmt.Errorf("close window: %w", err)
		}
		noted[name] = words
	}
	i.noted = noted
	return nil
}

// Read implements algo.Instance.
func (i *instance) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	s := snapshot.New(i.head, w)
	for _, name := range banked {
		var err error
		if i.words[name], err = i.arrays[name].ReadReset(bank, i.words[name]); err != nil {
			return nil, fmt.Errorf("read window: %w", err)
		}
	}
	for name, word := range map[string]string{"ahab_offered": "offered", "ahab_dropped": "dropped", "ahab_refused": "refused"} {
		words := i.noted[name]
		if words == nil {
			var err error
			if words, err = i.free(name); err != nil {
				return nil, fmt.Errorf("read window: %w", err)
			}
		}
		since := make([]uint64, i.entries()) // the table form has one word of what ceilings refused
		for n := range words {
			since[n] = words[n] - i.before[name][n]
		}
		i.before[name], s.Words[word] = words, since
	}
	i.noted = nil
	n := int(i.entries())
	s.Words["counters"] = i.words["ahab_counts"]
	s.Words["deeds"] = bySlice(n, i.words["ahab_passed"], i.words["ahab_lost"], i.words["ahab_marked"])
	s.Words["bytes"] = bySlice(n, nil, s.Words["dropped"], i.words["ahab_mark_bytes"])
	if err := i.readState(s, w.End); err != nil {
		return nil, err
	}
	if err := i.drain(); err != nil {
		return nil, err
	}
	i.name(s)
	s.Words["users"], s.Words["sampled"] = i.seen.words(), []uint64{i.share}
	return s, i.adapt(i.words["ahab_counts"][bpf.AhabAhabCounterAHAB_LOST_SAMPLES])
}

// banked are the arrays of a window.
var banked = []string{"ahab_counts", "ahab_passed", "ahab_lost", "ahab_marked", "ahab_mark_bytes"}

// bySlice is one array of what was done to n slices: an element an action, one slice after the other. Of what is not done there are no words.
func bySlice(n int, passed, dropped, marked []uint64) []uint64 {
	all := make([]uint64, n*actions)
	for action, words := range [][]uint64{passed, dropped, marked} {
		for slice := range min(n, len(words)) {
			all[slice*actions+action] = words[slice]
		}
	}
	return all
}

// readState takes limits, capacities and the sketch as they are now.
func (i *instance) readState(s *snapshot.Snapshot, now int64) (err error) {
	if s.Words["limit"], err = i.arrays["ahab_limit"].Read(0, nil); err != nil {
		return fmt.Errorf("read limits: %w", err)
	}
	elements, err := i.arrays["ahab_slices"].Read(0, nil)
	if err != nil {
		return fmt.Errorf("read capacities: %w", err)
	}
	capacities := make([]uint64, i.entries())
	for n := range capacities {
		capacities[n] = elements[n*sliceWords]
	}
	s.Words["capacity"] = capacities
	rows := make([][]uint64, 0, 3)
	for _, name := range []string{"ahab_row0", "ahab_row1", "ahab_row2"} {
		row, err := i.arrays[name].Read(0, nil)
		if err != nil {
			return fmt.Errorf("read sketch: %w", err)
		}
		rows = append(rows, row)
	}
	mean, high := i.overestimate(rows, uint32(uint64(now)>>tickShift(i.tau)))
	s.Words["overestimate"] = snapshot.Floats([]float64{mean, high})
	return nil
}

// sliceWords are 64-bit words of a struct ahab_slice.
const sliceWords = 6
