// Package agent measures on the interfaces that a configuration's rules match, for months: it attaches when they appear and detaches when
// they disappear, applies a changed configuration without losing a window, stores recent windows, and reports its health.
package agent

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/outlet"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Options of an agent.
type Options struct {
	Path    string // of the configuration
	Log     func(settings.Log) slog.Handler
	Notify  func(state string)       // reports a state to the service manager; nil: there is none
	Settle  func() ([]string, error) // drops privileges once listeners are open; returns those that remain
	Reload  <-chan os.Signal
	Stdout  io.Writer
	Version string
	Kernel  string
	// Watchdog is the service manager's watchdog interval; 0: none.
	Watchdog time.Duration
}

// Agent is a running agent.
type Agent struct {
	opts    Options
	spoken  switched
	log     *slog.Logger
	out     *outlet.Set
	metrics *prom.Store // of out
	memory  accounts
	seed    uint64 // of the hashes of rules that name none; secret
	started time.Time
	names   *namer
	known   knowledge
	links   *watcher
	dropped *dropped

	mu      sync.Mutex
	cfg     *config.Config
	workers map[string]*worker
	left    map[string]string // interfaces that are not measured because of a limit, with its name
	reloads [2]int            // number of configurations applied, and refused
	bus     *linked           // nil without a coordinator
	refusal string            // why the last configuration was refused; "" if it was applied

	changed  chan struct{} // a worker's state has changed
	loading  chan struct{} // semaphore of one worker that loads an instance: verification, and reading an object, take tens of megabytes each
	retired  []*worker     // workers that are ending
	swept    bool          // pins of an earlier agent were checked
	starting bool          // READY was not sent yet
	until    time.Time     // when READY is sent in any case
	ctx      context.Context
}

// Run runs an agent until the end of ctx.
func Run(ctx context.Context, opts Options) error {
	cfg, err := config.Load(opts.Path)
	if err != nil {
		return err
	}
	if opts.Notify == nil {
		opts.Notify = func(string) {}
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return fmt.Errorf("draw hash seed: %w", err)
	}
	a := &Agent{opts: opts, seed: binary.NativeEndian.Uint64(b[:]) | 1, cfg: cfg, started: time.Now(),
		workers: map[string]*worker{}, left: map[string]string{}, changed: make(chan struct{}, 1), loading: make(chan struct{}, 1)}
	a.spoken.set(opts.Log(cfg.Log))
	a.log = slog.New(&a.spoken)
	a.out = outlet.New(outlet.Options{Log: a.log, Stdout: opts.Stdout, Handler: a.handler})
	a.metrics = a.out.Metrics()
	a.dropped = &dropped{log: a.log}
	a.metrics.Dropped(a.dropped.read)
	return a.run(ctx)
}

func (a *Agent) run(ctx context.Context) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a.ctx = inner
	if err := a.open(inner); err != nil {
		return errors.Join(err, a.out.Close())
	}
	a.warn()
	a.log.Info("agent starts", "version", a.opts.Version, "configuration", a.opts.Path, "instances", len(a.cfg.Instances))
	a.logMemory()
	a.starting, a.until = true, time.Now().Add(patience)
	a.reconcile()
	a.loop(ctx)
	a.opts.Notify("STOPPING=1\nSTATUS=reporting the last windows")
	a.endWorkers(cancel)
	a.dropped.close()
	a.out.Hub().Close()
	_ = a.connect(nil) // nil opens nothing, so there is no error
	err := a.out.Close()
	a.know(knowledge{})
	a.log.Info("agent ends")
	return err
}

// open opens the outputs and listeners, some of which need privileges.
func (a *Agent) open(ctx context.Context) (err error) {
	limitHeap(a.cfg.Limits.Heap)
	a.memory.limit(a.cfg.Limits.Memory)
	a.names = newNamer(a.cfg.Names, a.log)
	more, err := a.knowing(a.cfg.Names, a.known)
	if err != nil {
		return err
	}
	a.know(more)
	next, err := a.out.Prepare(a.where(a.cfg, more))
	if err != nil {
		return err
	}
	a.out.Commit(next)
	if a.links, err = watch(ctx); err != nil {
		return err
	}
	if err := a.connect(a.cfg.Bus); err != nil {
		return err
	}
	rest, err := a.opts.Settle()
	if err != nil {
		a.log.Warn("privileges not dropped: more than needed stay", "error", err)
	} else {
		a.log.Info("privileges dropped", "kept", rest)
	}
	return nil
}

// where is the part of a configuration on outputs.
func (a *Agent) where(c *config.Config, k knowledge) outlet.Config {
	w := outlet.Config{Names: k.names, Outputs: c.Outputs, Store: c.Store, Listen: c.Listen, Metrics: c.Metrics, Socket: c.Socket, Promises: c.Promises, Alerts: c.Alerts, Web: c.Web}
	if c.Bus != nil {
		w.Keys = c.Bus.Keys
	}
	return w
}

// limitHeap sets the memory limit, unless GOMEMLIMIT in the environment does.
func limitHeap(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(75) // every window leaves garbage; memory matters more than processor time here
	}
}

// Preview describes the effects of a configuration on this host now, with its memory. Nothing is loaded.
func Preview(cfg *config.Config) ([]string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w, err := watch(ctx)
	if err != nil {
		return nil, err
	}
	links, err := w.list()
	if err != nil {
		return nil, err
	}
	if err := readable(cfg.Names); err != nil {
		return nil, err
	}
	lines, sum := []string{}, int64(0)
	if cfg.Bus != nil && cfg.Bus.Keys != nil {
		k, err := holdKeys(cfg.Bus)
		if err != nil {
			return nil, err
		}
		until, _ := k.Until()
		lines = append(lines, fmt.Sprintf("%s: certificate of %s, until %s", cfg.Bus.Keys.Certificate, cfg.Bus.Name, until.Format(time.DateOnly)))
		if text := k.Trouble(time.Now()); text != "" {
			lines = append(lines, text)
		}
	}
	for _, r := range cfg.Instances {
		var on []string
		for _, l := range links {
			if fits(r, l) {
				on = append(on, l.Name)
			}
		}
		if r.Shared {
			lines = append(lines, fmt.Sprintf("%s: as the coordinator sets; now on %s", r.Name, orNothing(on)))
			continue
		}
		if list := r.Unpaired(); len(list) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s: packets are seen on arrival only, answers that leave are not matched: %s", r.Name, strings.Join(list, ", "), config.PairRemedy))
		}
		n, err := r.Memory()
		if err != nil {
			return nil, err
		}
		line := fmt.Sprintf("%s: %s; now on %s; %d bytes of registers", r.Name, strings.Join(names(r), ", "), orNothing(on), n)
		if r.Each {
			line += fmt.Sprintf(" for each, %d now", n*int64(len(on)))
			n *= int64(len(on))
		}
		lines, sum = append(lines, line), sum+n
	}
	return append(lines, fmt.Sprintf("in total %d bytes of registers (limit %d), and a heap limit of about %d", sum, cfg.Limits.Memory, cfg.Limits.Heap)), nil
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "no interface"
	}
	return strings.Join(names, ", ")
}

func (a *Agent) warn() {
	if text := file.Exposed(a.opts.Path); text != "" {
		a.log.Warn(text)
	}
}

// logMemory logs the memory that the rules will take, before anything is loaded.
func (a *Agent) logMemory() {
	for _, r := range a.cfg.Instances {
		if n, err := r.Memory(); err == nil && !r.Shared {
			a.log.Info("register memory", "instance", r.Name, "bytes", n, "each", r.Each, "limit", a.cfg.Limits.Memory)
		}
	}
}

// patience is how long a change may take before READY is sent to the service manager in any case.
const patience = 30 * time.Second

// refresh is how often interfaces are listed and named without a notification of a change.
const refresh = 10 * time.Second

func (a *Agent) loop(ctx context.Context) {
	beat := time.NewTicker(a.beat())
	defer beat.Stop()
	again := time.NewTicker(refresh)
	defer again.Stop()
	for {
		a.ready()
		select {
		case <-ctx.Done():
			return
		case <-a.links.changed:
			time.Sleep(settle)
			a.reconcile()
		case <-a.opts.Reload:
			a.reload()
		case <-a.changed:
		case <-again.C:
			a.reconcile()
		case <-beat.C:
			a.alive()
		}
	}
}

// beat is half of the watchdog interval.
func (a *Agent) beat() time.Duration {
	if a.opts.Watchdog > 0 {
		return a.opts.Watchdog / 2
	}
	return refresh
}

// alive notifies the watchdog while windows close on time; otherwise the service manager restarts the agent.
func (a *Agent) alive() {
	h := a.Health()
	a.opts.Notify("STATUS=" + h.summary())
	if a.opts.Watchdog > 0 && !h.stuck {
		a.opts.Notify("WATCHDOG=1")
	}
}

// ready sends READY once, when all workers have applied the configuration or patience is over.
func (a *Agent) ready() {
	if !a.starting || !a.caughtUp() && time.Now().Before(a.until) {
		return
	}
	a.starting = false
	a.opts.Notify("READY=1\nSTATUS=" + a.Health().summary())
}

func (a *Agent) caughtUp() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.workers {
		if !w.caughtUp() {
			return false
		}
	}
	return true
}

// wake wakes the loop.
func (a *Agent) wake() { signal(a.changed) }

// reconcile compares the running instances with the wanted ones, and sets the workers' targets.
func (a *Agent) reconcile() {
	links, err := a.links.list()
	if err != nil {
		a.log.Warn("list of interfaces incomplete, retrying", "error", err)
		signal(a.links.changed)
		return
	}
	a.names.name(links)
	a.updateGuests(links)
	a.mu.Lock()
	defer a.mu.Unlock()
	wanted := a.wanted(links)
	a.learnOn(wanted)
	a.dropped.follow(a.cfg.KernelDrops, wanted)
	if !a.swept {
		a.swept = true
		a.dropPins(wanted)
	}
	for name, w := range a.workers {
		if _, there := wanted[name]; !there {
			w.set(desired{gone: true})
			delete(a.workers, name)
			a.retired = append(a.retired, w)
			a.out.Forget(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		w := a.workers[name]
		if w == nil {
			w = newWorker(a, name)
			a.workers[name] = w
			go w.run(a.ctx)
		}
		w.set(wanted[name])
	}
	a.retired = slices.DeleteFunc(a.retired, func(w *worker) bool {
		select {
		case <-w.done:
			a.out.Forget(w.name) // repeated because its last windows arrived after the first call
			return true
		default:
			return false
		}
	})
}

// wanted are the instances that should run, within the limits: running instances take precedence over new ones.
func (a *Agent) wanted(links []Link) map[string]desired {
	p := &plan{cfg: a.cfg, want: map[string]desired{}, left: map[string]string{}, interfaces: map[string]bool{}}
	rules := a.rules()
	for _, r := range rules {
		if !r.Each {
			p.want[r.Name] = desired{rule: r}
		}
	}
	for _, running := range []bool{true, false} {
		for _, r := range rules {
			for _, l := range links {
				if fits(r, l) && a.runs(r, l) == running {
					p.add(r, l)
				}
			}
		}
	}
	for name, limit := range p.left {
		if a.left[name] == "" {
			a.log.Warn("interface left alone", "interface", name, "reason", limit)
		}
	}
	a.left = p.left
	return p.want
}

// runs reports whether an interface was wanted before.
func (a *Agent) runs(r config.Instance, l Link) bool {
	w := a.workers[instanceName(r, l)]
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.want.ifaces, func(o Link) bool { return o.Index == l.Index && o.Name == l.Name })
}

func instanceName(r config.Instance, l Link) string {
	if r.Each {
		return r.Name + "/" + l.Name
	}
	return r.Name
}

// plan collects the wanted instances.
type plan struct {
	cfg        *config.Config
	want       map[string]desired
	left       map[string]string
	interfaces map[string]bool
}

func (p *plan) add(r config.Instance, l Link) {
	name := instanceName(r, l)
	d, there := p.want[name]
	switch {
	case !p.interfaces[l.Name] && len(p.interfaces) >= p.cfg.Limits.Interfaces:
		p.left[l.Name] = fmt.Sprintf("limits.interfaces: %d", p.cfg.Limits.Interfaces)
		return
	case !there && len(p.want) >= p.cfg.Limits.Instances:
		p.left[l.Name] = fmt.Sprintf("limits.instances: %d", p.cfg.Limits.Instances)
		return
	}
	d.rule = r
	d.ifaces = append(d.ifaces, l)
	slices.SortFunc(d.ifaces, func(a, b Link) int { return a.Index - b.Index })
	p.want[name] = d
	p.interfaces[l.Name] = true
}

// reload applies a changed configuration, or logs why it is refused and keeps the running one.
func (a *Agent) reload() {
	a.opts.Notify(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d\nSTATUS=reading the configuration", hostclock.Now()/1e3))
	a.starting, a.until = true, time.Now().Add(patience) // READY is sent when it is applied
	cfg, err := config.Load(a.opts.Path)
	var next *outlet.Opened
	var more knowledge
	if err == nil {
		more, err = a.knowing(cfg.Names, a.known)
	}
	if err == nil {
		next, err = a.out.Prepare(a.where(cfg, more))
	}
	if err == nil {
		if err = a.connect(cfg.Bus); err != nil {
			err = errors.Join(err, next.Close())
		}
	}
	if err != nil {
		a.forget(more)
		a.refuse(err)
		return
	}
	a.warn()
	limitHeap(cfg.Limits.Heap)
	a.memory.limit(cfg.Limits.Memory)
	a.mu.Lock()
	a.cfg = cfg
	a.reloads[0]++
	a.refusal = ""
	a.mu.Unlock()
	a.names = newNamer(cfg.Names, a.log)
	a.know(more)
	a.spoken.set(a.opts.Log(cfg.Log))
	a.out.Commit(next)
	a.log.Info("configuration applied", "instances", len(cfg.Instances))
	a.reconcile()
}

func (a *Agent) refuse(err error) {
	a.mu.Lock()
	a.reloads[1]++
	a.refusal = err.Error()
	a.mu.Unlock()
	for line := range strings.Lines(err.Error()) {
		a.log.Error("configuration refused, keeping the running one", "error", strings.TrimSpace(line))
	}
}

// publish passes a window to the outputs.
func (a *Agent) publish(l report.Line) {
	a.out.Publish(a.ctx, l)
}

// describe sends the description of an instance's run to the outputs.
func (a *Agent) describe(name string, r config.Instance) {
	run := report.Run{Version: a.opts.Version, Command: "agent", Kernel: a.opts.Kernel, Hook: string(r.Hook), Mode: string(r.Mode), Direction: string(r.Direction), Instance: name,
		Interfaces: r.Interfaces, Seed: r.Seed, Hash: string(r.Hash), Clock: hostclock.Read()}
	session.Describe(&run, r.Algorithms, r.Window)
	a.metrics.Start(report.Run{Version: run.Version, Command: run.Command, Kernel: run.Kernel, Clock: run.Clock})
	a.out.Describe(a.ctx, run)
}

// endWorkers stops all workers; every instance reports its last window.
func (a *Agent) endWorkers(cancel func()) {
	cancel()
	a.mu.Lock()
	all := append(slices.Collect(maps.Values(a.workers)), a.retired...)
	a.mu.Unlock()
	for _, w := range all {
		<-w.done
	}
}
