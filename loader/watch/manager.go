package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/namespace"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/loader/privilege"
)

// Options configure how a Manager attaches and what it does when interfaces appear and are removed.
type Options struct {
	Attach attach.Options
	// Reattach attaches again when an interface with the name of a removed one appears.
	Reattach bool
	// Pin keeps the attachments after this process ends; nil for none. The caller opens, matches and closes it.
	Pin *pin.Pin
	// Changed is called after an attachment ended or was made again, with the interface's name when it was attached.
	Changed func(iface string, attached bool)
}

// Manager holds the attachments of one instance to several interfaces. The removal of an interface ends its own
// attachment with a notice, and no other; when one of its name appears it is attached to again.
//
// It works in the network namespace of the thread that called NewManager, whichever thread calls it later.
type Manager struct {
	src  attach.Source
	opts Options

	mu       sync.Mutex
	attached map[string]*attach.Attachment // by name when attached; nil: waiting for the interface to reappear
	stop     func()                        // ends the watching and waits for that; nil unless Start succeeded
	watcher  *watcher                      // likewise
	tasks    chan func()                   // for the goroutine that watches, which is in the right namespace
	poll     time.Duration
	changes  []change // not yet passed to Options.Changed
}

// change holds the arguments of a call of Options.Changed.
type change struct {
	iface    string
	attached bool
}

// alivePoll is the interval of checks for detachments by other commands, which the kernel does not announce. A hypervisor
// has 200 interfaces to check. A multiple of the time after which idle sessions wake up.
const alivePoll = 3200 * time.Millisecond

// NewManager makes a manager without attachments.
func NewManager(src attach.Source, opts Options) *Manager {
	return &Manager{src: src, opts: opts, attached: map[string]*attach.Attachment{}, poll: alivePoll, tasks: make(chan func())}
}

// Attach attaches to interfaces, all or none, and pins them if there is a pin.
func (m *Manager) Attach(ifaces ...string) error {
	return m.inside(func() error { return m.attachAll(ifaces) })
}

// inside runs f in the manager's namespace: on the caller's thread before Start, and on the watching goroutine afterwards.
func (m *Manager) inside(f func() error) error {
	m.mu.Lock()
	started := m.stop != nil
	m.mu.Unlock()
	if !started {
		return f()
	}
	result := make(chan error, 1)
	m.tasks <- func() { result <- f() }
	return <-result
}

func (m *Manager) attachAll(ifaces []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var fresh []string
	for _, name := range ifaces {
		err := m.attachOne(name)
		if err != nil {
			return errors.Join(err, m.undo(fresh))
		}
		fresh = append(fresh, name)
	}
	if err := m.commit(); err != nil {
		return errors.Join(err, m.undo(fresh))
	}
	if err := m.follow(fresh); err != nil {
		return errors.Join(err, m.undo(fresh), m.commit())
	}
	return nil
}

// follow watches interfaces that are attached after Start.
func (m *Manager) follow(names []string) error {
	if m.stop == nil {
		return nil
	}
	for _, name := range names {
		if err := m.watcher.want(name); err != nil {
			return err
		}
	}
	return nil
}

// Detach ends the attachments of interfaces permanently: they are not attached to again.
func (m *Manager) Detach(ifaces ...string) error {
	return m.inside(func() error { return m.detachAll(ifaces) })
}

func (m *Manager) detachAll(ifaces []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, name := range ifaces {
		a, known := m.attached[name]
		if !known {
			errs = append(errs, fmt.Errorf("detach from %s: %w: it is not attached to", name, attach.ErrUsage))
			continue
		}
		delete(m.attached, name)
		if m.stop != nil {
			m.watcher.forget(name)
		}
		if a != nil {
			errs = append(errs, a.Close())
		}
	}
	return errors.Join(append(errs, m.commit())...)
}

func (m *Manager) attachOne(name string) error {
	if m.attached[name] != nil {
		return fmt.Errorf("attach to %s: %w: it was named twice", name, attach.ErrUsage)
	}
	a, err := m.attachment(name)
	if err == nil {
		m.attached[name] = a
	}
	return err
}

func (m *Manager) attachment(name string) (*attach.Attachment, error) {
	if m.opts.Pin != nil {
		return m.opts.Pin.Attach(m.src, name, m.opts.Attach)
	}
	return attach.Attach(m.src, name, m.opts.Attach)
}

func (m *Manager) undo(names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, m.attached[name].Close())
		delete(m.attached, name)
	}
	return errors.Join(errs...)
}

// Commit updates the pin after its programs were exchanged.
func (m *Manager) Commit() error {
	return m.inside(func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.commit()
	})
}

// commit updates the pin with the current attachments.
func (m *Manager) commit() error {
	if m.opts.Pin == nil {
		return nil
	}
	m.opts.Pin.Waiting = nil
	for name, a := range m.attached {
		if a == nil {
			m.opts.Pin.Waiting = append(m.opts.Pin.Waiting, name)
		}
	}
	return m.opts.Pin.Commit(m.src, m.live())
}

// Attachments returns those that are attached now.
func (m *Manager) Attachments() []*attach.Attachment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live()
}

func (m *Manager) live() []*attach.Attachment {
	var list []*attach.Attachment
	for _, a := range m.attached {
		if a != nil {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b *attach.Attachment) int { return a.IfIndex - b.IfIndex })
	return list
}

// Start starts watching the attached interfaces; after it returns no event is missed, and no privilege is needed that Drop
// removes. Close ends it.
func (m *Manager) Start(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	stopped, err := m.watch(ctx)
	if err != nil {
		stop()
		return err
	}
	m.stop = func() { stop(); <-stopped }
	return nil
}

// watch starts the goroutine that follows the interfaces until ctx ends; stopped is closed when it has ended.
func (m *Manager) watch(ctx context.Context) (stopped <-chan struct{}, err error) {
	ns, err := namespace.Current()
	if err != nil {
		return nil, err
	}
	events, w, err := watch(ctx, slices.Collect(maps.Keys(m.attached)))
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	m.watcher = w
	ready, done := make(chan error), make(chan struct{})
	go func() {
		defer close(done)
		m.run(ns, ready, events)
	}()
	return done, <-ready
}

func (m *Manager) run(ns namespace.Handle, ready chan<- error, events <-chan Event) {
	err := enter(ns)
	ready <- err
	if err != nil {
		return
	}
	tick := time.NewTimer(m.untilPoll())
	defer tick.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			m.handle(e)
		case task := <-m.tasks:
			task()
		case <-tick.C:
			m.checkAlive()
			tick.Reset(m.untilPoll())
		}
	}
}

// untilPoll is the time to the next multiple of the interval: all managers of a process check together, which wakes it up once.
func (m *Manager) untilPoll() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return m.poll
	}
	return m.poll - time.Duration(now.Nano())%m.poll
}

func (m *Manager) handle(e Event) {
	defer m.notifyChanges()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case Removed:
		m.lost(e)
	case Appeared:
		m.found(e)
	case Renamed:
		m.notify("%s; measuring continues", e)
	default:
		m.notify("%s", e)
		m.retry(e)
	}
}

// retry attaches to an interface that is up now, after attaching to it failed.
func (m *Manager) retry(e Event) {
	if e.Kind == Up {
		m.found(e)
	}
}

// lost ends the attachment of a removed interface, by its index: it may have been renamed before.
func (m *Manager) lost(e Event) {
	for name, a := range m.attached {
		if a != nil && a.IfIndex == e.Index {
			m.attached[name] = nil
			m.end(name, a, e.String())
			m.sayWaiting(name)
		}
	}
}

// end closes an attachment with a message. Its programs are already detached, so errors are ignored.
func (m *Manager) end(name string, a *attach.Attachment, why string) {
	_ = a.Close()
	m.notify("%s: the attachment of %s has ended", why, name)
	m.recommit()
	m.changed(name, false)
}

func (m *Manager) sayWaiting(name string) {
	if m.opts.Reattach {
		m.notify("waiting for interface %s to return", name)
	}
}

func (m *Manager) found(e Event) {
	if a, wanted := m.attached[e.Name]; !wanted || a != nil || !m.opts.Reattach {
		return
	}
	a, err := m.attachment(e.Name)
	if err != nil {
		m.notify("%s, but attaching to it failed: %v", e, err)
		return
	}
	m.attached[e.Name] = a
	m.notify("%s: attached to it again", e)
	m.recommit()
	m.changed(e.Name, true)
}

func (m *Manager) recommit() {
	if err := m.commit(); err != nil {
		m.notify("updating the pin failed: %v", err)
	}
}

// checkAlive detects programs that another command detached, and interfaces that were removed before Start.
func (m *Manager) checkAlive() {
	defer m.notifyChanges()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, a := range m.attached {
		if a == nil || a.Alive() {
			continue
		}
		if _, err := netlink.LinkByIndex(a.IfIndex); err != nil {
			m.lost(Event{Kind: Removed, Name: name, Index: a.IfIndex})
			continue
		}
		delete(m.attached, name) // on purpose: it is not attached to again
		m.end(name, a, "its programs were detached by another command")
	}
}

func (m *Manager) notify(format string, args ...any) {
	if m.opts.Attach.Notice != nil {
		m.opts.Attach.Notice(format, args...)
	}
}

func (m *Manager) changed(name string, attached bool) {
	m.changes = append(m.changes, change{name, attached})
}

// notifyChanges calls Changed without the lock: it may call the manager.
func (m *Manager) notifyChanges() {
	m.mu.Lock()
	changes := m.changes
	m.changes = nil
	m.mu.Unlock()
	for _, c := range changes {
		if m.opts.Changed != nil {
			m.opts.Changed(c.iface, c.attached)
		}
	}
}

// Close stops watching and ends all attachments; pinned ones stay attached without this process.
func (m *Manager) Close() error {
	if m.stop != nil {
		m.stop()
	}
	if m.opts.Pin != nil {
		m.checkAlive() // an attachment that was detached a moment ago must not stay pinned
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for name, a := range m.attached {
		delete(m.attached, name)
		if a == nil {
			continue
		}
		if m.opts.Pin != nil {
			errs = append(errs, a.Leave())
			continue
		}
		errs = append(errs, a.Close())
	}
	return errors.Join(errs...)
}

// enter moves the calling thread into the manager's namespace.
func enter(ns namespace.Handle) error {
	defer ns.Close()
	return privilege.Explain(ns.Enter())
}
