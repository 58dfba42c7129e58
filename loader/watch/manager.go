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

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/namespace"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/loader/privilege"
)

// Options say how a Manager attaches and what it does when interfaces come and go.
type Options struct {
	Attach attach.Options
	// Reattach attaches again when an interface of a name that was lost comes back.
	Reattach bool
	// Pin keeps the attachments beyond this process; nil for none. The caller opens, matches and closes it.
	Pin *pin.Pin
	// Changed is called after an attachment ended or came back, with the name it was attached by.
	Changed func(iface string, attached bool)
}

// Manager keeps the attachments of one instance to several interfaces. An interface that vanishes ends its own
// attachment with a message, and nothing else; when one of its name comes back it is attached to again.
//
// It works in the network namespace of the thread that called NewManager, wherever it is called from later.
type Manager struct {
	src  attach.Source
	opts Options

	mu       sync.Mutex
	attached map[string]*attach.Attachment // by the name attached by; nil: waiting for it to come back
	stop     func()                        // ends the watching and waits for that; nil unless Start succeeded
	watcher  *watcher                      // likewise
	tasks    chan func()                   // for the goroutine that watches, which is in the right namespace
	poll     time.Duration
	changes  []change // not yet told
}

// change is what Options.Changed is told.
type change struct {
	iface    string
	attached bool
}

// alivePoll is how soon a detachment by another command is noticed: the kernel announces none. A hypervisor
// has 200 interfaces to ask for.
const alivePoll = 3 * time.Second

// NewManager makes a manager without attachments.
func NewManager(src attach.Source, opts Options) *Manager {
	return &Manager{src: src, opts: opts, attached: map[string]*attach.Attachment{}, poll: alivePoll, tasks: make(chan func())}
}

// Attach attaches to interfaces, all or none, and pins them if there is a pin.
func (m *Manager) Attach(ifaces ...string) error {
	return m.inside(func() error { return m.attachAll(ifaces) })
}

// inside runs f in the manager's namespace: that of the caller before Start, and of the goroutine that watches afterwards.
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

// follow watches what was attached after Start.
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

// Detach ends the attachments of interfaces, for good: they are not attached to again.
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

// Commit brings the pin up to date after other programs have taken the place of those that it has.
func (m *Manager) Commit() error {
	return m.inside(func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.commit()
	})
}

// commit brings the pin up to date with the attachments there are.
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

// Start begins to watch the interfaces that are attached to; it returns when nothing can be missed any more, and
// then needs no privilege that Drop takes away. Close ends it.
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
	tick := time.NewTicker(m.poll)
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
		}
	}
}

func (m *Manager) handle(e Event) {
	defer m.tell()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case Gone:
		m.lost(e)
	case Appeared:
		m.found(e)
	case Renamed:
		m.say("%s; measuring goes on", e)
	default:
		m.say("%s", e)
		m.retry(e)
	}
}

// retry attaches when an interface that could not be attached to has come up.
func (m *Manager) retry(e Event) {
	if e.Kind == CameUp {
		m.found(e)
	}
}

// lost ends the attachment of an interface that is gone, by its index: it may have been renamed before.
func (m *Manager) lost(e Event) {
	for name, a := range m.attached {
		if a != nil && a.IfIndex == e.Index {
			m.attached[name] = nil
			m.end(name, a, e.String())
			m.sayWaiting(name)
		}
	}
}

// end closes an attachment with a message. Its programs are off the interface, so errors say nothing new.
func (m *Manager) end(name string, a *attach.Attachment, why string) {
	_ = a.Close()
	m.say("%s: the attachment of %s has ended", why, name)
	m.recommit()
	m.changed(name, false)
}

func (m *Manager) sayWaiting(name string) {
	if m.opts.Reattach {
		m.say("waiting for interface %s to return", name)
	}
}

func (m *Manager) found(e Event) {
	if a, wanted := m.attached[e.Name]; !wanted || a != nil || !m.opts.Reattach {
		return
	}
	a, err := m.attachment(e.Name)
	if err != nil {
		m.say("%s, but attaching to it failed: %v", e, err)
		return
	}
	m.attached[e.Name] = a
	m.say("%s: attached to it again", e)
	m.recommit()
	m.changed(e.Name, true)
}

func (m *Manager) recommit() {
	if err := m.commit(); err != nil {
		m.say("the pin could not be brought up to date: %v", err)
	}
}

// checkAlive notices programs that another command took off, and interfaces that went before Start.
func (m *Manager) checkAlive() {
	defer m.tell()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, a := range m.attached {
		if a == nil || a.Alive() {
			continue
		}
		if _, err := netlink.LinkByIndex(a.IfIndex); err != nil {
			m.lost(Event{Kind: Gone, Name: name, Index: a.IfIndex})
			continue
		}
		delete(m.attached, name) // on purpose: it is not attached to again
		m.end(name, a, "its programs were detached by another command")
	}
}

func (m *Manager) say(format string, args ...any) {
	if m.opts.Attach.Notice != nil {
		m.opts.Attach.Notice(format, args...)
	}
}

func (m *Manager) changed(name string, attached bool) {
	m.changes = append(m.changes, change{name, attached})
}

// tell calls Changed without the lock: it may ask the manager something.
func (m *Manager) tell() {
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

// Close stops watching and ends all attachments; pinned ones go on running without this process.
func (m *Manager) Close() error {
	if m.stop != nil {
		m.stop()
	}
	if m.opts.Pin != nil {
		m.checkAlive() // what was detached a moment ago must not stay pinned
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

// enter puts the calling goroutine into the manager's namespace.
func enter(ns namespace.Handle) error {
	defer ns.Close()
	return privilege.Explain(ns.Enter())
}
