package loader

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/loader/share"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// MostAlike is the largest number of instances with one set of programs: that many parts of each register array are allocated at once.
const MostAlike = 32

// mostShared is the largest number of algorithms in a shared chain. Each instance's entry program adds a tail call, of which the kernel
// allows 33 to a packet.
const mostShared = 12

// pool is one set of programs and maps that serves several instances: proven and verified once. Each has a number, a part of every array
// (package share), a control word, rings, and for each hook a program of a few instructions that notes the number.
type pool struct {
	key      [sha256.Size]byte
	places   int
	chain    Object
	shared   map[string]*ebpf.Map
	counters *ebpf.CollectionSpec // chain_counters of all parts
	halves   xmaps.Halves

	mu      sync.Mutex // of what follows, and of the collections' programs
	taken   []bool     // by number
	used    []bool     // another instance had the number before
	members []*pooled
	entries map[EntryConfig]int // index in the gates of its kind
	gates   map[Kind]*ebpf.Map  // shared entry programs, which the instances' own programs tail-call
}

// pooled is an algorithm that several instances run.
type pooled struct {
	id    [sha256.Size]byte
	coll  *ebpf.Collection
	users int
	used  []bool // by number: its part holds data of an earlier instance
}

// pools are those of this process.
var pools struct {
	sync.Mutex
	list    []*pool
	refused map[[sha256.Size]byte]error // programs that cannot be shared here, and why
}

// shareable returns the reason why instances with these algorithms cannot share programs; nil: they can.
func shareable(objects []Object, opts Options) error {
	switch {
	case opts.RecircDelay > 0, len(opts.Maps) > 0, len(opts.Loose) > 0, opts.Unproven:
		return fmt.Errorf("%w: it is pinned, replayed with delayed second passes, or studied", share.ErrNotShared)
	case len(objects) > mostShared:
		return fmt.Errorf("%w: %d algorithms, %d at most", share.ErrNotShared, len(objects), mostShared)
	}
	for _, o := range objects {
		if o.Enforces || o.Needs&xmaps.NeedQueue != 0 {
			return fmt.Errorf("%w: %s acts on packets or watches queues", share.ErrNotShared, o.Name)
		}
	}
	return nil
}

// idOf is a digest of a configured algorithm at its place in a chain: algorithms of equal digest can be shared. The name determines the instructions.
func (i *Instance) idOf(o Object, at int) ([sha256.Size]byte, error) {
	spec := o.Spec.Copy()
	if err := i.setCommon(spec); err != nil {
		return [sha256.Size]byte{}, err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %d %v %v\n", o.Name, at, o.Needs, o.RecircShare, slices.Sorted(maps.Keys(spec.Programs)))
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		m := spec.Maps[name]
		fmt.Fprintf(h, "map %s %v %d %d %d %d %q", name, m.Type, m.KeySize, m.ValueSize, m.MaxEntries, m.Flags, m.Tags)
		if !share.Common(m) {
			fmt.Fprintf(h, " %v", m.Contents)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Variables)) {
		fmt.Fprintf(h, "constant %s %x\n", name, spec.Variables[name].Value)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func (i *Instance) keyOf(objects []Object) (key [sha256.Size]byte, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%v %v", i.opts.Decap, i.opts.Replay)
	for at, o := range objects {
		id, err := i.idOf(o, at)
		if err != nil {
			return key, err
		}
		h.Write(id[:])
		fmt.Fprintf(h, "group %d", o.Group)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// join finds a free number in a pool of alike instances, or makes a pool.
func (i *Instance) join(chain *ebpf.CollectionSpec, objects []Object) error {
	if err := shareable(objects, i.opts); err != nil {
		return err
	}
	key, err := i.keyOf(objects)
	if err != nil {
		return err
	}
	pools.Lock()
	defer pools.Unlock()
	if err := pools.refused[key]; err != nil {
		return err
	}
	for _, p := range pools.list {
		if p.key == key && i.take(p) {
			return nil
		}
	}
	p, err := newPool(chain, i.chain, key, min(i.opts.Alike, MostAlike))
	if err != nil {
		return err
	}
	pools.list = append(pools.list, p)
	i.take(p)
	return i.fillHashTables()
}

// refuse records that programs cannot be shared, and why.
func refuse(key [sha256.Size]byte, err error) {
	pools.Lock()
	defer pools.Unlock()
	if pools.refused == nil {
		pools.refused = map[[sha256.Size]byte]error{}
	}
	pools.refused[key] = err
}

// numberSpec is the map, common to a pool's programs, that holds the number of the current packet's instance.
var numberSpec = share.NumberSpec(xmaps.TagShared)

func newPool(chain *ebpf.CollectionSpec, object Object, key [sha256.Size]byte, places int) (*pool, error) {
	p := &pool{key: key, places: places, chain: object, shared: map[string]*ebpf.Map{}, entries: map[EntryConfig]int{}, gates: map[Kind]*ebpf.Map{},
		taken: make([]bool, places), used: make([]bool, places)}
	wide := &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{}}
	for name, ms := range chain.Maps {
		if isShared(ms) || name == "chain_counters" {
			wide.Maps[name] = ms.Copy()
		}
	}
	if err := share.Collection(wide, places, numberSpec); err != nil {
		return nil, err
	}
	p.counters = &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"chain_counters": wide.Maps["chain_counters"]}}
	for name, ms := range wide.Maps {
		m, err := ebpf.NewMap(ms)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("create map %s: %w", name, privilege.Explain(err)), p.close())
		}
		p.shared[name] = m
	}
	if err := share.SetNumber(p.shared[share.Number], 0); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// take gives the instance a number of the pool.
func (i *Instance) take(p *pool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := slices.Index(p.taken, false)
	if n < 0 {
		return false
	}
	p.taken[n] = true
	i.pool, i.number, i.shared = p, n, p.shared
	return true
}

// leave returns the number to the pool. No packet of the instance is being processed any more.
func (i *Instance) leave() error {
	pools.Lock()
	defer pools.Unlock()
	p := i.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[i.number], p.used[i.number] = false, true
	if slices.Contains(p.taken, true) {
		return nil
	}
	pools.list = slices.DeleteFunc(pools.list, func(q *pool) bool { return q == p })
	return p.close()
}

func (p *pool) close() error {
	var errs []error
	for _, m := range p.shared {
		errs = append(errs, m.Close())
	}
	for _, m := range p.gates {
		errs = append(errs, m.Close())
	}
	for _, m := range p.members {
		m.coll.Close()
	}
	return errors.Join(errs...)
}

// clean clears the instance's part of the chain's own maps if an earlier instance used it.
func (i *Instance) clean() error {
	if !i.pool.used[i.number] {
		return nil
	}
	return i.chainSet().Clear()
}

// chainSet are the chain's maps, as the instance has them.
func (i *Instance) chainSet() *xmaps.Set {
	if i.pool == nil {
		return xmaps.NewSet(i.chain.Spec, i.shared)
	}
	return xmaps.NewPart(i.chain.Spec, i.shared, i.number, share.Common)
}

// lockPool excludes other instances from changing the programs that they share with this one.
func (i *Instance) lockPool() (unlock func()) {
	if i.pool == nil {
		return func() {}
	}
	i.pool.mu.Lock()
	return i.pool.mu.Unlock
}

// loadPooled is load for an instance of a pool: programs that another instance has loaded are reused.
func (i *Instance) loadPooled(o Object, at int) (*member, error) {
	if err := shareable([]Object{o}, i.opts); err != nil {
		return nil, fmt.Errorf("load %s: %w", o.Name, err)
	}
	id, err := i.idOf(o, at)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", o.Name, err)
	}
	defer i.lockPool()()
	n := slices.IndexFunc(i.pool.members, func(m *pooled) bool { return m.id == id })
	if n < 0 {
		_, coll, err := i.loadObject(o, at)
		if err != nil {
			return nil, err
		}
		n = len(i.pool.members)
		i.pool.members = append(i.pool.members, &pooled{id: id, coll: coll, used: make([]bool, i.pool.places)})
	}
	p := i.pool.members[n]
	p.users++
	m := &member{object: o, at: at, coll: p.coll, pooled: p, rings: map[string]*ebpf.Map{}}
	if err := i.furnish(m); err != nil {
		i.release(m)
		return nil, fmt.Errorf("load %s: %w", o.Name, err)
	}
	return m, nil
}

// placing are updates that run concurrently.
type placing struct {
	running sync.WaitGroup
	mu      sync.Mutex
	err     error
}

func (p *placing) start(f func() error) {
	p.running.Go(func() {
		err := f()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.err = errors.Join(p.err, err)
	})
}

// wait returns when all updates have ended, with their errors.
func (p *placing) wait() error {
	p.running.Wait()
	return p.err
}

// furnish gives a member its part of the maps, with the contents of new maps, and rings of its own.
func (i *Instance) furnish(m *member) error {
	loaded := maps.Clone(m.coll.Maps)
	for name, ms := range m.object.Spec.Maps {
		if ms.Type != ebpf.RingBuf || loaded[name] == nil {
			continue
		}
		ring, err := ebpf.NewMap(ms)
		if err != nil {
			return fmt.Errorf("create map %s: %w", name, privilege.Explain(err))
		}
		m.rings[name], loaded[name] = ring, ring
		rings := m.coll.Maps[name]
		m.placed.start(func() error { // each update waits for the running programs: those of all algorithms wait together (Prepare)
			if err := rings.Update(uint32(i.number), ring, ebpf.UpdateAny); err != nil {
				return fmt.Errorf("load %s: place ring %s: %w", m.object.Name, name, err)
			}
			return nil
		})
	}
	m.set = xmaps.NewPart(m.object.Spec, loaded, i.number, share.Common)
	if m.pooled.used[i.number] {
		if err := m.set.Clear(); err != nil {
			return err
		}
	}
	m.pooled.used[i.number] = true
	m.set.MarkEmpty()
	return fillPart(m)
}

// fillPart writes the initial contents of tables.
func fillPart(m *member) error {
	for name, ms := range m.object.Spec.Maps {
		if share.Common(ms) || len(ms.Contents) == 0 {
			continue
		}
		a, err := m.set.Array(name)
		if err != nil {
			return err
		}
		for _, kv := range ms.Contents {
			key, ok := kv.Key.(uint32)
			if !ok {
				return fmt.Errorf("fill %s: key %v", name, kv.Key)
			}
			if err := a.SetElement(key, kv.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// release frees a member's own maps, and its programs when no other instance runs them. The pool is locked.
func (i *Instance) release(m *member) {
	_ = m.placed.wait() // the maps must not be closed before
	for name, ring := range m.rings {
		_ = m.coll.Maps[name].Delete(uint32(i.number)) // fails where the pool is already closed
		ring.Close()
	}
	if m.pooled.users--; m.pooled.users > 0 {
		return
	}
	i.pool.members = slices.DeleteFunc(i.pool.members, func(p *pooled) bool { return p == m.pooled })
	m.coll.Close()
}

// free closes a member.
func (i *Instance) free(m *member) {
	if m.pooled == nil {
		m.coll.Close()
		return
	}
	defer i.lockPool()()
	i.release(m)
}
