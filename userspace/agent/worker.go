package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// desired is the target state of an instance.
type desired struct {
	rule   config.Instance
	ifaces []Link
	gone   bool // the instance is to be removed
}

func (d desired) names() []string {
	names := make([]string, len(d.ifaces))
	for i, l := range d.ifaces {
		names[i] = l.Name
	}
	return names
}

// member is the interface of an instance that has registers for each interface; else "".
func (d desired) member() string {
	if d.rule.Each && len(d.ifaces) == 1 {
		return d.ifaces[0].Name
	}
	return ""
}

// attempt is a failed operation that is retried.
type attempt struct {
	err   error
	next  time.Time
	pause time.Duration
}

const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// again is the next attempt after this one has failed.
func (a attempt) again(err error, now time.Time) attempt {
	pause := min(max(2*a.pause, firstPause), maxPause)
	return attempt{err, now.Add(pause), pause}
}

// worker brings one instance to its target state, concurrently with the others. Only the worker changes its session.
type worker struct {
	name  string
	agent *Agent

	mu      sync.Mutex
	want    desired
	number  int // of want; increases with every target
	settled int // number of the target that was applied last, with or without success
	wake    chan struct{}
	done    chan struct{}

	open     bool
	opened   time.Time
	rule     config.Instance // of the running session
	attached map[string]int  // index by name
	lost     map[string]bool // of attached: their programs were detached, by another command or with the interface
	failed   map[string]attempt
	trouble  attempt   // failed operation on the instance as a whole
	last     time.Time // of the last window
	windows  int
	lines    map[string]report.Line // the latest of each algorithm, without its report
	own      error                  // why its programs are not shared; nil: they are, or sharing was not wanted

	alone    bool                            // its programs are not shared, because a change was impossible with shared ones; used by the worker's goroutine only
	session  *session.Session                // used by the worker's goroutine only
	receiver atomic.Pointer[session.Session] // session that receives the coordinator's messages; nil: none
}

func newWorker(a *Agent, name string) *worker {
	return &worker{name: name, agent: a, wake: make(chan struct{}, 1), done: make(chan struct{}), attached: map[string]int{},
		lost: map[string]bool{}, failed: map[string]attempt{}, lines: map[string]report.Line{}}
}

// set sets the target state of the instance.
func (w *worker) set(d desired) {
	w.mu.Lock()
	changed := w.number == 0 || !reflect.DeepEqual(w.want, d)
	if changed {
		if !reflect.DeepEqual(w.want.rule, d.rule) {
			w.trouble = attempt{}
		}
		w.want = d
		w.number++
	}
	w.mu.Unlock()
	if changed {
		signal(w.wake)
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// caughtUp reports whether the worker has applied its target, as far as possible.
func (w *worker) caughtUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled == w.number
}

func (w *worker) run(ctx context.Context) {
	defer close(w.done)
	for {
		var ended <-chan struct{}
		if w.session != nil {
			ended = w.session.Done()
		}
		retry := w.retry()
		select {
		case <-ctx.Done():
			w.close()
			return
		case <-ended:
			w.ended()
		case <-w.wake:
		case <-retry:
		}
		d, number := w.wanted()
		if d.gone {
			w.remove()
			return
		}
		if ctx.Err() == nil {
			w.converge(ctx, d)
		}
		w.mu.Lock()
		w.settled = number
		w.mu.Unlock()
		w.agent.wake()
	}
}

func (w *worker) wanted() (desired, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.want, w.number
}

// retry fires when the next attempt is due.
func (w *worker) retry() <-chan time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := w.trouble.next
	for _, a := range w.failed {
		if next.IsZero() || a.next.Before(next) {
			next = a.next
		}
	}
	if next.IsZero() {
		return nil
	}
	return time.After(time.Until(next))
}

// ended handles a session that ended by itself.
func (w *worker) ended() {
	err := w.session.Close()
	if err == nil {
		err = errors.New("it has ended")
	}
	w.session = nil
	w.forget()
	w.fail("measuring ended", err)
}

// fail records a failure of the instance as a whole, and logs it if it is new.
func (w *worker) fail(what string, err error) {
	err = fmt.Errorf("%s: %w", what, err)
	w.mu.Lock()
	news := w.trouble.err == nil || w.trouble.err.Error() != err.Error()
	w.trouble = w.trouble.again(err, time.Now())
	pause := w.trouble.pause
	w.mu.Unlock()
	if news {
		w.agent.log.Error(what, "instance", w.name, "error", err, "again_in", pause)
	}
}

func (w *worker) forget() {
	w.receiver.Store(nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = false
	clear(w.attached)
	clear(w.lost)
	clear(w.lines)
	w.agent.memory.release(w.name)
}

// remove ends the instance and removes its pins.
func (w *worker) remove() {
	if w.session != nil && w.rule.Pin != "" {
		if err := w.apply(context.Background(), nil); err != nil {
			w.agent.log.Warn("detach instance failed", "instance", w.name, "error", err)
		}
	}
	w.close()
}

// close ends the instance; its last windows are reported.
func (w *worker) close() {
	if w.session == nil {
		return
	}
	if err := w.session.Close(); err != nil {
		w.agent.log.Error("end instance failed", "instance", w.name, "error", err)
	}
	w.session = nil
	w.forget()
	w.agent.log.Info("instance ended", "instance", w.name)
}

// converge brings the instance to its target state in steps that a running session supports.
func (w *worker) converge(ctx context.Context, d desired) {
	if w.session != nil && !w.rule.SameRegisters(d.rule) {
		w.agent.log.Info("instance restarts: the packets that it counts have changed", "instance", w.name)
		w.remove()
	}
	if w.session == nil {
		if !w.due() || !w.start(ctx, d) {
			return
		}
	}
	w.retune(ctx, d)
	if w.session == nil {
		return // it could not be restarted
	}
	w.keepSnapshots(d)
	w.release(ctx, d)
	w.attach(ctx, d)
}

func (w *worker) due() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !time.Now().Before(w.trouble.next)
}

// firstTry: a pinned instance is started with its interfaces at the first attempt only, so that one interface that cannot be
// attached does not prevent the start.
func (w *worker) firstTry() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble.err == nil
}

// start loads an instance without interfaces, unless it is pinned: then the attachments of an earlier agent are taken over at
// once.
func (w *worker) start(ctx context.Context, d desired) bool {
	bytes, err := w.agent.memory.reserve(w.name, d.rule)
	if err != nil {
		w.fail("load an instance", err)
		return false
	}
	cfg := d.rule.Session()
	cfg.Name, cfg.Member, cfg.Watched = d.rule.Name, d.member(), true
	if d.rule.Pin != "" {
		cfg.Pin = pinName(w.name)
		if w.firstTry() {
			cfg.Interfaces = d.names() // attachments of an earlier agent are continued
		}
	} else if cfg.Seed == 0 {
		cfg.Seed = w.agent.seed // one for all instances, so that they can share verified programs
	}
	cfg.Emit, cfg.Notice, cfg.Changed = w.emit, w.notice, w.changed
	if d.rule.Shared {
		cfg.Boundary = w.agent.boundary
		cfg.Publish = func(s session.Message) { w.agent.sendMessage(w.name, s) }
		cfg.Epoch = w.agent.epoch
	}
	began := time.Now()
	w.session, err = w.load(ctx, cfg)
	if err != nil {
		w.session = nil
		w.agent.memory.release(w.name)
		w.fail("load an instance", err)
		return false
	}
	if d.rule.Shared {
		w.receiver.Store(w.session)
	}
	w.mu.Lock()
	for _, l := range d.ifaces {
		if slices.Contains(cfg.Interfaces, l.Name) {
			w.attached[l.Name] = l.Index
		}
	}
	w.open, w.opened, w.rule, w.trouble = true, time.Now(), d.rule, attempt{}
	if !w.alone {
		w.own = w.session.Alone()
	}
	w.mu.Unlock()
	w.agent.log.Info("instance loaded", "instance", w.name, "algorithms", names(d.rule), "window", d.rule.Window, "register_bytes", bytes,
		"took", time.Since(began).Round(time.Millisecond))
	if list := d.rule.Unpaired(); len(list) > 0 {
		w.agent.log.Warn("packets are seen on arrival only: answers that leave are not matched", "instance", w.name, "algorithms", list, "remedy", config.PairRemedy)
	}
	w.agent.describe(w.name, d.rule)
	return true
}

// load opens a session when no other worker opens one.
func (w *worker) load(ctx context.Context, cfg session.LiveConfig) (*session.Session, error) {
	select {
	case w.agent.loading <- struct{}{}:
		defer func() { <-w.agent.loading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !w.alone {
		cfg.Alike = w.agent.alike(w.ruleNow())
	}
	return session.Open(ctx, cfg)
}

// alike is how many instances of a rule with each the programs are loaded for: the waiting ones, or as many as exist already, so that 200
// interfaces that appear one by one need eight loads.
func (a *Agent) alike(r config.Instance) int {
	if !r.Each {
		return 0
	}
	room := 1 + a.memory.room(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting, open := 0, 0
	for _, w := range a.workers {
		w.mu.Lock()
		switch {
		case w.want.rule.Name != r.Name:
		case w.open:
			open++
		default:
			waiting++
		}
		w.mu.Unlock()
	}
	return min(max(waiting, open), room)
}

// ruleNow is the wanted rule, which applies to windows that begin now.
func (w *worker) ruleNow() config.Instance {
	d, _ := w.wanted()
	return d.rule
}

func names(r config.Instance) []string {
	list := make([]string, len(r.Algorithms))
	for i, a := range r.Algorithms {
		list[i] = a.Descriptor.Name
	}
	return list
}

// retune exchanges algorithms and windows.
func (w *worker) retune(ctx context.Context, d desired) {
	if reflect.DeepEqual(measured(w.rule), measured(d.rule)) || !w.due() {
		return
	}
	_, err := w.agent.memory.reserve(w.name, d.rule)
	if err == nil {
		err = w.session.Apply(ctx, session.Target{Algorithms: d.rule.Algorithms, Interfaces: w.interfaces(), Window: d.rule.Window})
	}
	if errors.Is(err, session.ErrReopen) {
		w.agent.log.Info("instance restarts with programs of its own", "instance", w.name, "reason", err)
		w.remove()
		w.mu.Lock()
		w.alone, w.own = true, err
		w.mu.Unlock()
		w.start(ctx, d)
		return
	}
	if err != nil {
		w.agent.memory.back(w.name, w.rule)
		w.fail("change an instance: it keeps running unchanged", err)
		return
	}
	w.mu.Lock()
	w.rule, w.trouble = d.rule, attempt{}
	for name := range w.lines {
		if !slices.Contains(names(d.rule), name) {
			delete(w.lines, name)
		}
	}
	w.mu.Unlock()
	w.agent.log.Info("instance changed", "instance", w.name, "algorithms", names(d.rule), "window", d.rule.Window)
	w.agent.describe(w.name, d.rule)
}

// keepSnapshots sets whether windows include their snapshots.
func (w *worker) keepSnapshots(d desired) {
	if w.rule.Snapshots == d.rule.Snapshots || d.rule.Shared {
		return
	}
	if err := w.session.KeepSnapshots(d.rule.Snapshots); err != nil {
		return // it has ended, which ended() reports
	}
	w.mu.Lock()
	w.rule.Snapshots = d.rule.Snapshots
	w.mu.Unlock()
}

// measured is the part of a rule that a running session can change, in a comparable form.
func measured(r config.Instance) any {
	type one struct {
		name   string
		window int64
		values map[string]any
	}
	var list []one
	for _, a := range r.Algorithms {
		list = append(list, one{a.Descriptor.Name, a.Window, a.Values.Map()})
	}
	return struct {
		window time.Duration
		list   []one
	}{r.Window, list}
}

// interfaces are those of the session.
func (w *worker) interfaces() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.attached))
}

// release detaches from interfaces that are no longer wanted, and from names that another interface has now.
func (w *worker) release(ctx context.Context, d desired) {
	var gone []string
	w.mu.Lock()
	for name, index := range w.attached {
		if !slices.ContainsFunc(d.ifaces, func(l Link) bool { return l.Name == name && l.Index == index }) {
			gone = append(gone, name)
		}
	}
	for name := range w.failed {
		if !slices.Contains(d.names(), name) {
			delete(w.failed, name)
		}
	}
	w.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	slices.Sort(gone)
	rest := slices.DeleteFunc(w.interfaces(), func(n string) bool { return slices.Contains(gone, n) })
	if err := w.apply(ctx, rest); err != nil {
		w.agent.log.Warn("release of interfaces failed", "instance", w.name, "interfaces", gone, "error", err)
	}
	w.mu.Lock()
	for _, name := range gone {
		delete(w.attached, name)
		delete(w.lost, name)
	}
	w.mu.Unlock()
	w.agent.log.Info("interfaces released", "instance", w.name, "interfaces", gone)
}

func (w *worker) apply(ctx context.Context, interfaces []string) error {
	return w.session.Apply(ctx, session.Target{Algorithms: w.rule.Algorithms, Interfaces: interfaces})
}

// batch is how many interfaces are attached with one change: few, so that the end of a window is not delayed by much.
const batch = 4

// attach attaches to wanted interfaces whose next attempt is due.
func (w *worker) attach(ctx context.Context, d desired) {
	var fresh []Link
	now := time.Now()
	w.mu.Lock()
	for _, l := range d.ifaces {
		if _, there := w.attached[l.Name]; !there && !now.Before(w.failed[l.Name].next) {
			fresh = append(fresh, l)
		}
	}
	w.mu.Unlock()
	for some := range slices.Chunk(fresh, batch) {
		if err := w.take(ctx, some); err == nil {
			continue
		}
		for _, l := range some { // one interface may have failed the others
			if err := w.take(ctx, []Link{l}); err != nil {
				w.refused(l, err)
			}
		}
	}
}

func (w *worker) take(ctx context.Context, some []Link) error {
	all := w.interfaces()
	for _, l := range some {
		all = append(all, l.Name)
	}
	if err := w.apply(ctx, all); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range some {
		w.attached[l.Name] = l.Index
		delete(w.failed, l.Name)
	}
	return nil
}

func (w *worker) refused(l Link, err error) {
	w.mu.Lock()
	before := w.failed[l.Name]
	w.failed[l.Name] = before.again(err, time.Now())
	w.mu.Unlock()
	if before.err == nil {
		w.agent.log.Warn("attach failed", "instance", w.name, "interface", l.Name, "error", err, "again_in", firstPause)
	}
}

// emit publishes a window.
func (w *worker) emit(l report.Line) error {
	w.mu.Lock()
	if len(w.want.ifaces) == 1 {
		l.Guest = w.want.ifaces[0].Guest
	}
	w.last = time.Now()
	w.windows = l.Window.Number + 1
	short := l
	short.Report = report.Body{}
	w.lines[l.Algorithm] = short
	w.mu.Unlock()
	w.agent.publish(l)
	return nil
}

func (w *worker) notice(format string, args ...any) {
	w.agent.log.Info(fmt.Sprintf(format, args...), "instance", w.name)
}

// changed is called by the session when an interface disappears or reappears.
func (w *worker) changed(iface string, attached bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if attached {
		delete(w.lost, iface)
		return
	}
	w.lost[iface] = true
}
