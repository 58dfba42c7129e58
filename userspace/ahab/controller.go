package ahab

import (
	"fmt"
	"math"
	"net"
	"os"
	stdslices "slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/maps/prefix"
	"github.com/xdpmon/xdpmon/userspace/ahab/control"
	"github.com/xdpmon/xdpmon/userspace/ahab/slices"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// What happens when the process stops.
const (
	failOpen = "open"
	failHold = "hold"
)

// lookEvery is how often the file of slices and the interfaces are looked at.
const lookEvery = 200 * time.Millisecond

// sliceController is what a file of slices needs: who belongs to which, and the loop that divides.
type sliceController struct {
	members  *prefix.Table
	loop     *control.Loop
	mapped   struct{ slices, offered, dropped, refused *maps.Shared }
	modified time.Time // of the file
	removed  bool      // it is, as was reported
	around   []slices.Interface
	looked   int64
	left     string // interfaces without room, as was reported
	absent   string // interfaces that are not there, as was reported
	reading  *reading
}

// held is how long limits hold from one renewal on.
func (c *config) held() time.Duration {
	if c.fail == failHold {
		return c.hold
	}
	return c.lease
}

// interfaces of the namespace that this process is in, if a file asks for any.
func interfaces(file *slices.File) (list []slices.Interface) {
	if !file.Watches() {
		return nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, n := range all {
		list = append(list, slices.Interface{Name: n.Name, Index: n.Index})
	}
	return list
}

// sizeMembers leaves room for a file that has grown to twice its size.
func (c *config) sizeMembers(spec *ebpf.CollectionSpec) error {
	if c.path == "" {
		return prefix.Size(spec, "ahab_members", 16)
	}
	trie, err := prefix.Build(c.plan.Roots, c.plan.Rules, prefix.MaxWords)
	if err != nil {
		return fmt.Errorf("read %s: %w", c.path, err)
	}
	return prefix.Size(spec, "ahab_members", min(prefix.MaxWords, 2*len(trie.Words)+1<<12+64*c.file.Room))
}

// bindSteer fills the table of members and starts the loop.
func (i *instance) bindSteer(set *maps.Set) (err error) {
	if i.plan == nil {
		return nil
	}
	if i.members, err = prefix.Open(set, "ahab_members"); err != nil {
		return err
	}
	for name, words := range map[string]**maps.Shared{"ahab_slices": &i.mapped.slices, "ahab_offered": &i.mapped.offered, "ahab_dropped": &i.mapped.dropped,
		"ahab_refused": &i.mapped.refused} {
		if *words, err = i.arrays[name].Shared(); err != nil {
			return err
		}
	}
	if info, err := os.Stat(i.path); err == nil {
		i.modified = info.ModTime()
	}
	i.around = interfaces(i.file)
	i.loop = control.New(i.plan, nil, float64(i.spacing))
	i.announce()
	if i.path == "" {
		return nil
	}
	return i.members.Replace(i.plan.Roots, i.plan.Rules)
}

// announce reports what has to be known from the start.
func (i *instance) announce() {
	if i.fail == failHold && !i.replay {
		i.notify("ahab: limits stay for %v when this process stops or, pinned, is killed", i.hold)
	}
	if left := strings.Join(i.plan.Left, ", "); left != i.left {
		if i.left = left; left != "" {
			i.notify("ahab: no room for a slice of %s: they pass unlimited; give %s more room", left, i.path)
		}
	}
	if absent := strings.Join(i.plan.Absent, ", "); absent != i.absent {
		if i.absent = absent; absent != "" && !i.replay {
			i.notify("ahab: %s names %s, which is not here: its slices have no packets until it is", i.path, absent)
		}
	}
}

// Bytes implements control.Registers.
func (i *instance) Bytes(n int) (offered, dropped, refused uint64) {
	if !i.table {
		refused = i.mapped.refused.Load(n)
	}
	return i.mapped.offered.Load(n), i.mapped.dropped.Load(n), refused
}

// Allow implements control.Registers.
func (i *instance) Allow(n int, rate float64) {
	capacity := uint64(0)
	if !math.IsInf(rate, 1) {
		capacity = uint64(rate)
	}
	i.slices[n].capacity = capacity
	i.mapped.slices.Store(n*sliceWords, capacity)
	i.mapped.slices.Store(n*sliceWords+2, uint64(i.norm(n))|uint64(i.budget(capacity))<<32)
	if i.table { // elsewhere it is the same for every capacity
		i.mapped.slices.Store(n*sliceWords+1, i.mapped.slices.Load(n*sliceWords+1)&math.MaxUint32|uint64(i.ceiling(n, capacity, full))<<32)
	}
}

// Space implements control.Registers.
func (i *instance) Space(n int, bytes uint32) {
	i.mapped.slices.Store(n*sliceWords+1, i.mapped.slices.Load(n*sliceWords+1)&^math.MaxUint32|uint64(bytes))
}

// Spare implements control.Registers.
func (i *instance) Spare(n int, until int64) {
	i.mapped.slices.Store(n*sliceWords+5, uint64(until))
}

// controlled is a tick of the loop. What prevents a change is reported, and changes nothing.
func (i *instance) controlled(now int64) error {
	if i.loop == nil {
		return nil
	}
	if i.path != "" && (i.reading != nil || now-i.looked >= int64(lookEvery)) {
		i.looked = now
		if err := i.follow(); err != nil {
			i.notify("ahab: the slices stay as they were: %v", err)
		}
	}
	switch away := i.loop.Tick(now, i); {
	case away < 0:
		i.notify("ahab: the clock was set back by %v: the control loop restarts", time.Duration(-away*1e9).Round(time.Millisecond))
	case away > 0:
		i.notify("ahab: the control loop did not run for %v: limits held for %v of it, and restart", time.Duration(away*1e9).Round(time.Millisecond), i.held())
	}
	return nil
}

// follow carries out what has changed in the file, or of the interfaces that it names. A file that was removed leaves everything as it is.
func (i *instance) follow() error {
	if i.reading != nil {
		return i.carry()
	}
	around := interfaces(i.file)
	changed := !stdslices.Equal(around, i.around)
	if i.inline() {
		if i.around = around; !changed {
			return nil
		}
		return i.change(i.read(false, around))
	}
	info, err := slices.Stat(i.path)
	if removed := err != nil; removed != i.removed {
		if i.removed = removed; removed {
			return err
		}
	}
	fresh := err == nil && !info.ModTime().Equal(i.modified)
	if !changed && !fresh {
		return nil
	}
	if fresh {
		i.modified = info.ModTime()
	}
	i.around = around
	i.reading = &reading{done: make(chan plans, 1)}
	go func(done chan<- plans) { done <- i.read(fresh, around) }(i.reading.done) // what it looks at stays until carry
	return i.carry()
}

// reading is a file on its way: thousands of slices take longer than limits may wait for the loop.
type reading struct{ done chan plans }

// plans are the result of a file on the interfaces that there are.
type plans struct {
	file   *slices.File
	around []slices.Interface
	plan   *slices.Plan
	trie   *prefix.Trie
	err    error
}

// readFor is how long a tick waits for a file: for most it is enough.
const readFor = 20 * time.Millisecond

// carry carries out a file that has been read; it is called again while it has not.
func (i *instance) carry() error {
	late := time.NewTimer(readFor)
	defer late.Stop()
	select {
	case p := <-i.reading.done:
		i.reading = nil
		return i.change(p)
	case <-late.C:
		return nil
	}
}

// read makes the next plan, and changes nothing.
func (i *instance) read(fresh bool, around []slices.Interface) (p plans) {
	p.file, p.around = i.file, around
	if fresh {
		if p.file, p.err = slices.Load(i.path); p.err != nil {
			return p
		}
		p.around = interfaces(p.file)
		if p.file.Room > i.file.Room { // registers are as many as they were at the start
			p.file.Room = min(p.file.Room, len(i.slices)-1)
		}
	}
	if p.plan, p.err = p.file.Plan(p.around, i.plan); p.err != nil {
		return p
	}
	if p.trie, p.err = prefix.Build(p.plan.Roots, p.plan.Rules, i.members.Words()); p.err != nil {
		p.err = fmt.Errorf("%s: %w: start again", i.path, p.err)
	}
	return p
}

// change puts another plan in the place of the one that runs. Slices that stay keep registers and limits; new ones have theirs before packets
// find them.
func (i *instance) change(p plans) error {
	if p.err != nil {
		return p.err
	}
	was := i.slices
	i.take(p.plan)
	for n := range i.slices {
		if i.slices[n].name != was[n].name || i.slices[n].user != was[n].user || i.slices[n].ceiling != was[n].ceiling {
			if err := i.bindChanged(n, was[n]); err != nil {
				return err
			}
		}
	}
	if err := i.members.Put(p.trie); err != nil {
		return err
	}
	i.file, i.around, i.plan, i.loop = p.file, p.around, p.plan, control.New(p.plan, i.loop, float64(i.spacing))
	i.announce()
	return nil
}

// bindChanged writes a slice's element; one that is new begins with the highest limit as well.
func (i *instance) bindChanged(n int, was slice) error {
	if i.slices[n].name != was.name {
		return i.bindSlice(uint32(n))
	}
	return i.arrays["ahab_slices"].SetElement(uint32(n), i.element(n, i.slices[n].capacity, full))
}

// name writes into a snapshot what slices it is of.
func (i *instance) name(s *snapshot.Snapshot) {
	if i.path == "" {
		return
	}
	names, norms := make([]string, len(i.slices)), make([]uint64, len(i.slices))
	for n, slice := range i.slices {
		names[n], norms[n] = slice.name, uint64(i.norm(n))
	}
	s.Texts, s.Words["norms"] = map[string][]string{"slices": names}, norms
}

// named takes the slices from a snapshot.
func (c *config) named(s *snapshot.Snapshot) error {
	if c.path == "" {
		return nil
	}
	names, r := s.Texts["slices"], s.Read()
	if len(names) < 2 || len(names) > slices.MaxSlices+1 {
		r.Refuse("it names %d slices", len(names)-1)
		return r.Err()
	}
	norms := r.Words("norms", len(names))
	c.slices = make([]slice, len(names))
	for n, name := range names {
		if norms[n] == 0 || norms[n] > 1<<24 {
			norms[n] = 1 << 16
		}
		c.slices[n] = slice{name: name, norm: uint32(norms[n])}
	}
	return r.Err()
}
