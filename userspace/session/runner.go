package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/compare"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// member is one algorithm of a run.
type member struct {
	selected  Selected
	group     *group
	instance  algo.Instance
	oracle    algo.Oracle // nil without --truth, and for algorithms that have none
	memory    report.Memory
	set       *maps.Set
	owner     *owner     // nil while only the caller's goroutine runs
	messenger *messenger // nil: the algorithm exchanges no messages
	object    loader.Object
	since     int64         // when it was added, in the middle of a window; 0: at the start
	before    loader.Counts // packet counts of its first window at that time
	rest      *rest         // the latest window, if it was without packets
	values    string        // of selected, for idleKey
	ticked    bool          // its controller has run since then; used by the owner's goroutine
}

// runner is the common part of live and replayed runs: the loaded chain and its windows.
type runner struct {
	cfg        Config
	inst       *loader.Instance
	members    []*member
	who        report.Identity   // of the windows
	groups     []*group          // the first is group 0
	aligned    bool              // windows end where those of other hosts do
	owning     context.Context   // of the owners; nil while there are none
	failed     chan error        // errors of their control loops
	lost       map[string]uint64 // packets that never reached a program, by cause; added to every line and reset
	decodeOpts packet.DecodeOptions
	messengers sync.Map // of the members that run, by algorithm
	detaching  int64    // ns by which the last window is longer, while interfaces are detached
	fresh      bool     // registers were empty at the start: none is of an earlier run
	seen, cut  uint64   // packets of all windows, and those that end within their headers
}

// Objects configures the selected algorithms for loading; it loads nothing.
func Objects(cfg Config, replay bool) ([]loader.Object, []algo.Instance, error) {
	r := &runner{cfg: cfg}
	if err := r.regroup(cfg.Algorithms); err != nil {
		return nil, nil, err
	}
	members, err := r.configured(cfg.Algorithms, replay)
	if err != nil {
		return nil, nil, err
	}
	return objectsOf(members), instancesOf(members), nil
}

// setup is the part of the configuration that the algorithms of a run share, but for the length of windows.
func (cfg *Config) setup(replay bool, window int64) algo.Setup {
	return algo.Setup{Replay: replay, Hash: cfg.Hash, WindowNS: window}
}

// configured configures algorithms for loading.
func (r *runner) configured(algorithms []Selected, replay bool) (all []*member, err error) {
	for _, s := range algorithms {
		m, err := r.member(s, replay)
		if err != nil {
			return nil, fmt.Errorf("configure %s: %w", s.Descriptor.Name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func (r *runner) member(s Selected, replay bool) (*member, error) {
	cfg, g := &r.cfg, r.groupOf(s)
	s, err := s.For(cfg.setup(replay, g.length))
	if err != nil {
		return nil, err
	}
	env := algo.Env{Seed: cfg.Seed, Notice: cfg.Notice, Interfaces: cfg.interfaces, Arrives: cfg.arrives}
	if cfg.Epoch != nil {
		env.Epoch = func() uint64 { return cfg.Epoch(g.length) }
	}
	instance, err := s.New(env)
	if err != nil {
		return nil, err
	}
	spec, err := outline(s.Descriptor)
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	if err := instance.Configure(spec); err != nil {
		return nil, err
	}
	object := loader.Object{Name: s.Descriptor.Name, Spec: spec, Read: s.Descriptor.Spec, Needs: instance.Needs(), Enforces: s.Descriptor.Enforces,
		Group: g.number}
	if a, ok := instance.(algo.Enforcer); ok {
		object.Enforces = object.Enforces && a.Acts()
	}
	if s, ok := instance.(algo.Steerer); ok {
		object.Steering = loader.Steering(s.Steers())
	}
	if r, ok := instance.(algo.Recirculator); ok {
		object.RecircShare = r.RecirculationShare()
	}
	return &member{selected: s, group: g, instance: instance, object: object}, nil
}

// outlines caches object files that were read: the size of an algorithm is computed several times before it is loaded.
var outlines sync.Map // of *ebpf.CollectionSpec, by *algo.Descriptor

// outline returns a copy for the caller to configure.
func outline(d *algo.Descriptor) (*ebpf.CollectionSpec, error) {
	if known, ok := outlines.Load(d); ok {
		return known.(*ebpf.CollectionSpec).Copy(), nil
	}
	spec, err := d.Spec()
	if err != nil {
		return nil, err
	}
	known, _ := outlines.LoadOrStore(d, loader.Outline(spec))
	return known.(*ebpf.CollectionSpec).Copy(), nil
}

// newRunner loads the algorithms; before that, adopt may inspect them and add maps of an earlier run to opts.
func newRunner(cfg Config, who report.Identity, opts loader.Options, adopt func([]loader.Object, *loader.Options) error) (*runner, error) {
	r := &runner{cfg: cfg, who: who, lost: map[string]uint64{}, decodeOpts: packet.DecodeOptions{Decap: cfg.Decap}}
	if err := r.regroup(cfg.Algorithms); err != nil {
		return nil, err
	}
	members, err := r.configured(cfg.Algorithms, opts.Replay)
	if err != nil {
		return nil, err
	}
	if opts.Alike > 1 {
		alike(members)
	}
	objects := objectsOf(members)
	opts.Seed, opts.CRC, opts.Decap, opts.Loading = cfg.Seed, cfg.Hash == algo.HashCRC, cfg.Decap, cfg.Loading
	if opts.RecircDelay, err = recirculationDelay(instancesOf(members)); err != nil {
		return nil, err
	}
	if err := adopt(objects, &opts); err != nil {
		return nil, err
	}
	r.fresh = len(opts.Maps) == 0
	if r.inst, err = loader.Load(objects, opts); err != nil {
		return nil, err
	}
	for _, m := range members {
		if err := r.bindFrom(r.inst.Set, m); err != nil {
			r.inst.Close()
			return nil, fmt.Errorf("start %s: %w", m.selected.Descriptor.Name, err)
		}
	}
	r.members = members
	return r, nil
}

func instancesOf(members []*member) (instances []algo.Instance) {
	for _, m := range members {
		instances = append(instances, m.instance)
	}
	return instances
}

func objectsOf(members []*member) (objects []loader.Object) {
	for _, m := range members {
		objects = append(objects, m.object)
	}
	return objects
}

func (r *runner) bindFrom(find func(string) (*maps.Set, error), m *member) error {
	set, err := find(m.selected.Descriptor.Name)
	if err != nil {
		return err
	}
	m.set = set
	m.memory.RegisterBytes, m.memory.KernelBytes = set.Memory()
	if t, ok := m.instance.(algo.OracleProvider); ok && r.cfg.Truth {
		m.oracle = t.Oracle()
	}
	m.messenger = r.messenger(m)
	return m.instance.Bind(set)
}

// oracles reports whether decoded packets are needed: by an oracle, or by cfg.Frames.
func (r *runner) oracles() bool {
	for _, m := range r.members {
		if m.oracle != nil {
			return true
		}
	}
	return false
}

// tolerance is the ratio of a window's length to the configured one above which it is marked as stretched.
const tolerance = 1.05

// closing calls algorithms that have state outside of the banks to record it (algo.WindowCloser). It returns the window's end: the time after that, since
// a control loop may delay it by milliseconds, in which packets are counted.
func (r *runner) closing(clock func() int64, members []*member) (end int64, err error) {
	errs := make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		if c, ok := m.instance.(algo.WindowCloser); ok {
			all.Add(1)
			m.owner.do(func() { errs[i] = c.Closing() }, all.Done)
		}
	}
	all.Wait()
	return clock(), errors.Join(errs...)
}

// lines reads every algorithm's window, concurrently, and waits for all. The line of an algorithm that fails is missing, and its
// error is returned.
func (r *runner) lines(members []*member, ended func(*member) closed) ([]report.Line, error) {
	lines, errs := make([]report.Line, len(members)), make([]error, len(members))
	var all sync.WaitGroup
	all.Add(len(members))
	for i, m := range members {
		m.owner.do(func() {
			var err error
			if lines[i], err = r.line(m, ended(m)); err != nil {
				errs[i] = fmt.Errorf("report %s: %w", m.selected.Descriptor.Name, err)
			}
		}, all.Done)
	}
	all.Wait()
	complete := slices.DeleteFunc(lines, func(l report.Line) bool { return l.Algorithm == "" })
	return complete, errors.Join(errs...)
}

func (r *runner) line(m *member, c closed) (report.Line, error) {
	w, bank, counts := c.window, c.bank, c.counts
	idle := counts.Idle() // since the bank was opened; without subtracting counts from before the member was added
	w, counts = m.started(w), counts.Minus(m.before)
	m.since, m.before = 0, loader.Counts{}
	packets := report.Packets{Seen: counts.Seen, Segments: counts.Seen - counts.Aggregates + counts.Segments, Parsed: counts.Parsed,
		Bytes: counts.Bytes, Reasons: counts.Reasons, Verdicts: (*report.Verdicts)(counts.Verdicts), Queue: (*report.Queue)(counts.Queue)}
	idle = idle && m.owner != nil && m.set != nil
	if idle { // an idle link: its tables, as large as those of a busy one, need not be read
		m.set.MarkIdle(bank)
	} else if m.set != nil {
		m.set.MarkDirty()
	}
	before := m.rest
	if m.rest = nil; idle && m.oracle == nil && !r.cfg.Snapshots {
		m.rest = &rest{}
	}
	var result algo.Result
	var encoded []byte
	var err error
	if r.unread(m, w, bank, before) {
		result = m.rest.known.result
	} else {
		result, encoded, err = r.answer(m, w, bank, packets, before)
	}
	m.ticked = false
	if idle {
		m.set.EndIdle()
	}
	if err == nil {
		err = m.messenger.send(w.End) // messages of a window arrive before it
	}
	if err != nil {
		m.rest = nil
		return report.Line{}, err
	}
	packets.Used, packets.UsedSegments = result.Used, result.Segments
	line := report.Line{
		Algorithm: m.selected.Descriptor.Name,
		Identity:  r.who,
		Window:    w,
		Packets:   packets,
		Memory:    m.memory,
		Lost:      map[string]uint64{},
		Report:    result.Body,
		Snapshot:  encoded,
	}
	for _, lost := range []map[string]uint64{result.Lost, r.lost} {
		for name, n := range lost {
			line.Lost[name] += n
		}
	}
	if m.oracle != nil {
		truth := m.oracle.Window(w)
		errors := compare.Bodies(result.Body, truth)
		line.Truth, line.Error = &truth, &errors
	}
	m.rest.encode(&line)
	return line, nil
}

// answer reads a window and returns its report and, if configured, its encoded snapshot.
func (r *runner) answer(m *member, w report.Window, bank int, packets report.Packets, before *rest) (result algo.Result, encoded []byte, err error) {
	s, err := algo.Read(m.instance, w, bank)
	if err != nil {
		return algo.Result{}, nil, err
	}
	if result, err = m.report(s, before); err != nil || !r.cfg.Snapshots {
		return result, nil, err
	}
	s.Packets, s.Packets.Used, s.Packets.UsedSegments = packets, result.Used, result.Segments
	encoded, err = s.Encode()
	if errors.Is(err, snapshot.ErrSize) && r.cfg.Notice != nil { // the report is complete, so the run continues
		r.cfg.Notice("a snapshot is missing: %v", err)
		err = nil
	}
	return result, encoded, err
}

func (r *runner) close() error { return r.inst.Close() }

func joined(names []string) string { return strings.Join(names, ",") }
