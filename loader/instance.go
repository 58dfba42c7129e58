// Package loader proves and loads the chain and its algorithms, and exchanges them under traffic. Attaching
// to interfaces, replaying captures and pinning are packages of their own, below it. It names no algorithm: callers pass objects.
package loader

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/loader/share"
	"github.com/xdpmon/xdpmon/loader/specialize"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// Options of an instance.
type Options struct {
	Seed   uint64
	CRC    bool
	Decap  bool
	Replay bool
	// Maps are adopted from pins instead of being created, by the keys of Instance.Maps.
	Maps map[string]*ebpf.Map
	// RecircDelay is the number of later packets that a replay processes before a packet's second pass; 0: none.
	RecircDelay int
	// Unproven loads programs that break the memory rules: only for the baselines that exist to show why the rules matter.
	Unproven bool
	// Fixed: the algorithms stay those for which the first entry program is loaded, or request no more of the parser than these (ErrFixed). The entry
	// programs contain only what these request, so that they are verified in a third of the time.
	Fixed bool
	// Proven: the caller has proven the same programs before, with another seed. For studies that load them thousands of times.
	Proven bool
	// Loose are constants that Reseed may change. For studies that run the same programs with hundreds of seeds; not together with Lazy.
	Loose []string
	// Lazy loads the programs of a kind of hook when the first entry program of that kind is requested: verifying them is most of the
	// time of a start, and an instance seldom has interfaces of both kinds. Not together with Maps: an adopted chain has traffic already.
	Lazy bool
	// Soon are kinds that will certainly be requested: with Lazy their programs are loaded at once, so that each object is read once.
	Soon []Kind
	// Alike is the number of instances with the same algorithms and values, including this one: they share programs, and the registers of each
	// are one part of the same maps, which have at most MostAlike parts. Below 2, or where sharing is not possible (Alone), the instance has
	// maps and programs of its own.
	Alike int
	// Loading is called before each program is proven and loaded, with its name, its index and the total; nil: not called.
	Loading func(what string, n, of int)
	// Interrupted is called before each program is proven and loaded, and before an entry program is returned; an error ends the load, so
	// that a process that is terminating attaches nothing. nil: not called.
	Interrupted func() error
}

// Kind is the type of program that a hook runs.
type Kind int

const (
	XDP Kind = iota
	TC
	Sent // the start of transmission
)

func (k Kind) String() string { return [...]string{"xdp", "tc", "the start of transmission"}[k] }

// program is the type of a kind's programs.
func (k Kind) program() ebpf.ProgramType {
	return [...]ebpf.ProgramType{ebpf.XDP, ebpf.SchedCLS, ebpf.Tracing}[k]
}

// chainName is the name of the chain's own object among the algorithms.
const chainName = "chain"

// Instance is a chain with its algorithms: one set of registers for any number of interfaces.
type Instance struct {
	opts     Options
	shared   map[string]*ebpf.Map // phv, control, chains, budget, hash tables, chain counters
	control  *xmaps.Control
	chain    Object
	verdict  *Object // once a chain enforces
	windows  map[windowKey]Object
	loaded   []*member
	enforced *Verdicts // of this window, by a verdict program that was removed
	sent     *transmission

	parses xmaps.Need // with Options.Fixed: what the entry programs have code for

	looseEntry  *ebpf.Map // with Options.Loose: the constants of the entry program that Reseed changes
	looseConfig EntryConfig

	pool   *pool // whose programs and maps it shares with others; nil: they are its own
	number int   // in the pool
	alone  error

	mu      sync.Mutex                    // entry programs are requested while the chain is exchanged
	entries map[EntryConfig]*ebpf.Program // by configuration, without the interface
	kinds   map[Kind]bool                 // whose programs the members have
}

// member is one loaded algorithm.
type member struct {
	object Object
	at     int // its index in the chain when it was loaded
	coll   *ebpf.Collection
	set    *xmaps.Set
	pooled *pooled              // whose programs these are, in a pool
	rings  map[string]*ebpf.Map // in a pool; else they are the collection's
	placed placing              // ... on their way to the instance's place
}

// program finds the algorithm's program for a hook; an object has one of each type.
func (m *member) program(t ebpf.ProgramType) *ebpf.Program {
	for _, p := range m.coll.Programs {
		if p.Type() == t {
			return p
		}
	}
	return nil
}

// Load proves and loads algorithms; they run as soon as an entry program is attached.
func Load(objects []Object, opts Options) (*Instance, error) {
	spec, err := chainOutline()
	if err != nil {
		return nil, fmt.Errorf("read chain object: %w", err)
	}
	i := newInstance(spec, opts)
	if opts.Alike > 1 {
		err := i.build(spec, objects, true)
		if err == nil {
			return i, nil
		}
		i.Close()
		if !errors.Is(err, share.ErrNotShared) {
			return nil, err
		}
		i = newInstance(spec, opts)
		i.alone = err
	}
	if err := i.build(spec, objects, false); err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// chainOutline is the outline of the chain's object, read once and not changed: 200 instances need it.
var chainOutline = sync.OnceValues(func() (*ebpf.CollectionSpec, error) {
	spec, err := chain.LoadChain()
	if err != nil {
		return nil, err
	}
	outline := Outline(spec)
	for name, m := range outline.Maps { // created from it
		m.Key = spec.Maps[name].Key
	}
	return outline, nil
})

func newInstance(spec *ebpf.CollectionSpec, opts Options) *Instance {
	i := &Instance{opts: opts, chain: Object{Name: chainName, Spec: spec, Read: chain.LoadChain}, shared: map[string]*ebpf.Map{}, entries: map[EntryConfig]*ebpf.Program{}}
	i.kinds = map[Kind]bool{XDP: !opts.Lazy, TC: !opts.Lazy && !opts.Replay, Sent: false}
	for _, kind := range opts.Soon {
		i.kinds[kind] = true
	}
	return i
}

// Alone is the reason why an instance with Options.Alike has programs of its own; nil where it shares them or was not to.
func (i *Instance) Alone() error { return i.alone }

func (i *Instance) build(chain *ebpf.CollectionSpec, objects []Object, among bool) error {
	if err := privilege.RaiseMemlock(); err != nil {
		return err
	}
	if err := checkDescriptors(len(chain.Maps), objects); err != nil {
		return err
	}
	if among {
		return i.buildAmong(chain, objects)
	}
	if err := i.createShared(chain); err != nil {
		return fmt.Errorf("create maps of the chain: %w", err)
	}
	control, err := xmaps.NewControl(i.shared["chain_control"], i.chains()...)
	if err != nil {
		return err
	}
	i.control = control
	if err := i.fillHashTables(); err != nil {
		return err
	}
	return i.Replace(objects)
}

// buildAmong is build in a pool. Programs whose shared form the kernel's verifier refuses are not tried again.
func (i *Instance) buildAmong(chain *ebpf.CollectionSpec, objects []Object) error {
	if err := i.join(chain, objects); err != nil {
		return err
	}
	if err := i.clean(); err != nil {
		return err
	}
	control, err := xmaps.NewSharedControl(i.number, &i.pool.halves, i.shared["chain_control"], i.chains()...)
	if err != nil {
		return err
	}
	i.control = control
	err = i.Replace(objects)
	if errors.Is(err, ErrVerifier) {
		err = fmt.Errorf("%w: %w", share.ErrNotShared, err)
	}
	if errors.Is(err, share.ErrNotShared) {
		refuse(i.pool.key, err)
	}
	return err
}

// chains are the program arrays, in the order of a Slot.
func (i *Instance) chains() (list []*ebpf.Map) {
	for _, name := range []string{"chain_xdp", "chain_tc", "recirc_xdp", "recirc_tc", "chain_tp"} {
		list = append(list, i.shared[name])
	}
	return list
}

// createShared makes the maps that every object of the instance uses, once.
func (i *Instance) createShared(chain *ebpf.CollectionSpec) error {
	for name, ms := range chain.Maps {
		if !isShared(ms) && name != "chain_counters" {
			continue
		}
		m, err := i.adoptOr(chainName, ms)
		if err != nil {
			return err
		}
		i.shared[name] = m
	}
	return nil
}

func isShared(ms *ebpf.MapSpec) bool { return slices.Contains(ms.Tags, xmaps.TagShared) }

func (i *Instance) adoptOr(owner string, ms *ebpf.MapSpec) (*ebpf.Map, error) {
	if m, ok := i.opts.Maps[owner+"/"+ms.Name]; ok {
		return m, nil
	}
	m, err := ebpf.NewMap(ms)
	if err != nil {
		return nil, fmt.Errorf("create map %s: %w", ms.Name, privilege.Explain(err))
	}
	return m, nil
}

// progress reports the program that is loaded next, its index and the total.
func (i *Instance) progress(what string, n, of int) {
	if i.opts.Loading != nil {
		i.opts.Loading(what, n, of)
	}
}

// loadedMember returns the member that was loaded from the same object; nil if there is none.
func (i *Instance) loadedMember(o Object) *member {
	for _, m := range i.loaded {
		if m.object.Name == o.Name && m.object.Spec == o.Spec {
			return m
		}
	}
	return nil
}

func (i *Instance) install(members []*member) error {
	defer i.lockPool()()
	needs := xmaps.Need(0)
	slots := make([]xmaps.Slot, len(members))
	for n, m := range members {
		needs |= m.object.Needs
		xdp, tc := m.program(ebpf.XDP), m.program(ebpf.SchedCLS)
		slots[n] = xmaps.Slot{xdp, tc, xdp, tc, i.slotSent(m)}
	}
	if err := i.setBudgets(members); err != nil {
		return err
	}
	return i.control.SetChain(slots, needs)
}

// load proves and loads an object for index at of the chain.
func (i *Instance) load(o Object, at int) (*member, error) {
	if i.pool != nil {
		return i.loadPooled(o, at)
	}
	spec, coll, err := i.loadObject(o, at)
	if err != nil {
		return nil, err
	}
	return &member{object: o, at: at, coll: coll, set: xmaps.NewSet(spec, coll.Maps)}, nil
}

// loadObject proves and loads the programs of an object, and makes its maps.
func (i *Instance) loadObject(o Object, at int) (*ebpf.CollectionSpec, *ebpf.Collection, error) {
	if err := i.interrupted(o.Name); err != nil {
		return nil, nil, err
	}
	spec, err := i.configured(o, at)
	if err != nil {
		return nil, nil, err
	}
	if err := prove(o.Name, spec, i.opts.Unproven || i.opts.Proven); err != nil {
		return nil, nil, err
	}
	loosen(spec, i.opts.Loose)
	if err := i.adapt(spec); err != nil {
		return nil, nil, fmt.Errorf("load %s: %w", o.Name, err)
	}
	for kind, wanted := range i.kinds {
		if !wanted {
			removePrograms(spec, func(p *ebpf.ProgramSpec) bool { return p.Type == kind.program() })
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: i.replacements(o.Name, spec)})
	if err != nil {
		return nil, nil, fmt.Errorf("load %s: %w", o.Name, Explain(o.Name, err))
	}
	if err := i.closeUnneeded(coll); err != nil {
		coll.Close()
		return nil, nil, fmt.Errorf("load %s: %w", o.Name, err)
	}
	return spec, coll, nil
}

// adapt changes proven programs for this kernel, and for the instances that share them.
func (i *Instance) adapt(spec *ebpf.CollectionSpec) error {
	adaptToKernel(spec)
	if i.pool == nil {
		return nil
	}
	return share.Collection(spec, i.pool.places, numberSpec)
}

// interrupted returns the error of Options.Interrupted, with the program that is not loaded.
func (i *Instance) interrupted(what string) error {
	if i.opts.Interrupted == nil {
		return nil
	}
	if err := i.opts.Interrupted(); err != nil {
		return fmt.Errorf("load %s: %w", what, err)
	}
	return nil
}

// nextSlot is the constant with the slot of the next program, which a program jumps to without comparing all slots.
const nextSlot = "chain_behind"

// configured returns an object with the constants that it will run with at index at of the chain.
func (i *Instance) configured(o Object, at int) (*ebpf.CollectionSpec, error) {
	spec, err := o.Whole()
	if err == nil {
		err = i.setCommon(spec)
	}
	if err == nil && spec.Variables[nextSlot] != nil {
		err = xmaps.SetConstant(spec, nextSlot, uint32(at+1))
	}
	if err == nil {
		err = i.specialize(spec)
	}
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", o.Name, err)
	}
	return spec, nil
}

// specialize compiles the constants into the instructions, which are then proven and loaded. Constants that Reseed may change stay in their map.
func (i *Instance) specialize(spec *ebpf.CollectionSpec) error {
	if spec.Maps[constants] == nil {
		return nil
	}
	const hidden = ".loose" // specialize does not know it
	loose := func(offset uint32) bool { return isOneOf(spec, i.opts.Loose, offset) }
	refer(spec, constants, hidden, loose)
	err := specialize.Collection(spec, sectionOf(spec))
	refer(spec, hidden, constants, func(uint32) bool { return true })
	return err
}

// complete loads the programs of a kind that members lack. All programs of an object were proven when it was first loaded.
func (i *Instance) complete(members []*member, kind Kind) error {
	defer i.lockPool()()
	for _, m := range members {
		if m.program(kind.program()) != nil || !m.object.has(kind) {
			continue
		}
		if err := i.loadKind(m, kind); err != nil {
			return err
		}
	}
	return nil
}

func (i *Instance) loadKind(m *member, kind Kind) error {
	if err := i.interrupted(m.object.Name); err != nil {
		return err
	}
	spec, err := i.configured(m.object, m.at)
	if err == nil {
		err = i.adapt(spec)
	}
	if err != nil {
		return err
	}
	removePrograms(spec, func(p *ebpf.ProgramSpec) bool { return p.Type != kind.program() })
	use := i.replacements(m.object.Name, spec)
	for name, em := range m.coll.Maps {
		if !strings.HasPrefix(name, ".") {
			use[name] = em
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: use})
	if err != nil {
		return fmt.Errorf("load %s: %w", m.object.Name, Explain(m.object.Name, err))
	}
	defer coll.Close()
	if err := i.closeUnneeded(coll); err != nil {
		return fmt.Errorf("load %s: %w", m.object.Name, err)
	}
	for name := range coll.Programs {
		m.coll.Programs[name] = coll.DetachProgram(name)
	}
	return nil
}

// setCommon writes the constants that the headers declare in every object.
func (i *Instance) setCommon(spec *ebpf.CollectionSpec) error {
	common := map[string]any{"hash_seed": i.opts.Seed, "hash_keys": HashKeys(i.opts.Seed), "hash_crc": i.opts.CRC, "coin_seeded": i.opts.Replay,
		"recirc_deferred": i.opts.RecircDelay > 0, "parse_decaps": i.opts.Decap}
	for name, v := range common {
		if spec.Variables[name] == nil {
			continue
		}
		if err := xmaps.SetConstant(spec, name, v); err != nil {
			return err
		}
	}
	return nil
}

// replacements are the maps that an object does not create: shared ones, and adopted ones of its own.
func (i *Instance) replacements(owner string, spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	use := map[string]*ebpf.Map{}
	for name, ms := range spec.Maps {
		if m, ok := i.shared[name]; ok && (isShared(ms) || owner == chainName) {
			use[name] = m
		} else if m, ok := i.opts.Maps[owner+"/"+name]; ok {
			use[name] = m
		}
	}
	return use
}

// LoadBeside loads an object that is not part of the chain but uses the chain's shared maps. It is not proven.
func (i *Instance) LoadBeside(name string, spec *ebpf.CollectionSpec) (*ebpf.Collection, error) {
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: i.replacements(name, spec)})
	if err != nil {
		return nil, Explain(name, err)
	}
	return coll, nil
}

// RecircDelay is the number of later packets that a replay processes before a packet's second pass.
func (i *Instance) RecircDelay() int { return i.opts.RecircDelay }

// Set returns the maps of an algorithm.
func (i *Instance) Set(name string) (*xmaps.Set, error) {
	for _, m := range i.loaded {
		if m.object.Name == name {
			return m.set, nil
		}
	}
	return nil, fmt.Errorf("find maps of %s: not loaded", name)
}

// Control flips banks and exchanges the chain.
func (i *Instance) Control() *xmaps.Control { return i.control }

// Maps lists all maps by "chain/NAME" or "ALGORITHM/NAME", for pinning. Constants (.rodata) are not among them.
func (i *Instance) Maps() map[string]*ebpf.Map {
	all := map[string]*ebpf.Map{}
	for name, m := range i.shared {
		all[chainName+"/"+name] = m
	}
	for _, m := range i.loaded {
		for name, em := range m.coll.Maps {
			if i.shared[name] == nil && name != constants && name != looseMap {
				all[m.object.Name+"/"+name] = em
			}
		}
	}
	return all
}

// Programs lists the loaded algorithm programs by name.
func (i *Instance) Programs() map[string]*ebpf.Program {
	all := map[string]*ebpf.Program{}
	for _, m := range i.loaded {
		maps.Copy(all, m.coll.Programs)
	}
	return all
}

// Close frees everything. Entry programs that are still attached hold references to what they use until they are detached.
func (i *Instance) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var errs []error
	if i.control != nil && i.pool != nil {
		errs = append(errs, i.control.Close()) // afterwards no packet of this instance is being processed
	}
	for _, m := range i.loaded {
		i.free(m)
	}
	i.loaded = nil
	for kind, p := range i.entries {
		errs = append(errs, p.Close())
		delete(i.entries, kind)
	}
	if i.pool != nil {
		errs = append(errs, i.leave())
		i.pool, i.control, i.shared = nil, nil, nil
		return errors.Join(errs...)
	}
	errs = append(errs, i.sent.close())
	if i.control != nil {
		errs = append(errs, i.control.Close())
	}
	for _, m := range i.shared {
		errs = append(errs, m.Close())
	}
	if i.looseEntry != nil {
		errs = append(errs, i.looseEntry.Close())
	}
	return errors.Join(errs...)
}
