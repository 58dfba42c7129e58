package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/loader/share"
	"github.com/xdpmon/xdpmon/loader/watch"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrEnded is returned by calls of a session that has ended.
var ErrEnded = errors.New("the session has ended")

// ErrReopen is returned by Apply if a session that shares its programs cannot change to these while it runs: it has to be closed, and opened with
// programs of its own.
var ErrReopen = share.ErrNotShared

// Session owns programs, registers and windows of one set of interfaces, from Open to Close. A process may have several. Its methods
// may be called from any goroutine; one goroutine of its own executes them, between windows.
type Session struct {
	cfg     LiveConfig
	run     *runner
	pin     *pin.Pin
	manager *watch.Manager

	calls    chan func()
	cancel   context.CancelFunc
	done     chan struct{}
	err      error // valid once done is closed
	opened   time.Time
	attached int64 // when all interfaces were: the first window's end is counted from here
	end      int64 // end of the duration, if there is one, by the monotonic clock
}

// Open loads and attaches; the session measures when Open returns. ctx cancels the load, not the session: Close ends that.
func Open(ctx context.Context, cfg LiveConfig) (*Session, error) {
	beFrugal()
	cfg.complete()
	pin, err := openPin(&cfg)
	if err != nil {
		return nil, err
	}
	run, err := loadLive(ctx, &cfg, pin)
	if err != nil {
		return nil, errors.Join(err, closePin(pin))
	}
	if pin != nil && len(run.groups) > 1 { // the counts of longer windows so far are in this process
		return nil, errors.Join(fmt.Errorf("pin %s: %w: the algorithms of a pin have windows of one length", cfg.Pin, ErrWindows), closePin(pin), run.close())
	}
	s := &Session{cfg: cfg, run: run, pin: pin, calls: make(chan func()), done: make(chan struct{}), opened: time.Now()}
	s.run.aligned = cfg.Boundary != nil
	s.manager = watch.NewManager(run.inst, watch.Options{
		Attach:   attach.Options{Hook: cfg.Hook, Mode: cfg.Mode, Direction: cfg.Direction, Notice: cfg.Notice},
		Reattach: !cfg.Watched, Pin: pin, Changed: cfg.Changed,
	})
	if err := s.attach(ctx); err != nil {
		return nil, errors.Join(err, s.manager.Close(), closePin(pin), run.close())
	}
	giveBack()
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	stop, failed := run.own(loop)
	s.end = hostclock.Now() + int64(cfg.Duration)
	go s.measure(loop, stop, failed)
	return s, nil
}

// beFrugal makes garbage collection more frequent: a start creates much garbage, and this halves its memory for some processor time. GOGC
// in the environment overrides it.
var beFrugal = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(75)
	}
})

// loadsEnd is the time without another Open after which the memory of loading is released: collecting garbage for each of 200 sessions would
// take longer than loading them.
const loadsEnd = 300 * time.Millisecond

var loaded struct {
	sync.Mutex
	timer *time.Timer
}

// giveBack returns the memory of loading to the system once the last of several sessions is open: verification takes several times the memory of
// measuring.
func giveBack() {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.timer == nil {
		loaded.timer = time.AfterFunc(loadsEnd, debug.FreeOSMemory)
		return
	}
	loaded.timer.Reset(loadsEnd)
}

func (cfg *LiveConfig) complete() {
	if cfg.Window == 0 {
		cfg.Window = DefaultWindow
	}
	if cfg.Name == "" {
		cfg.Name = joined(cfg.Interfaces)
	}
	if cfg.Notice == nil {
		cfg.Notice = func(string, ...any) {}
	}
	if cfg.Changed == nil {
		cfg.Changed = func(string, bool) {}
	}
	if cfg.Emit == nil {
		cfg.Emit = func(report.Line) error { return nil }
	}
}

func (s *Session) attach(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	if err := s.manager.Attach(s.cfg.Interfaces...); err != nil {
		return err
	}
	if s.cfg.warms() {
		if err := s.warm(); err != nil {
			return err
		}
	}
	s.attached = hostclock.Now()
	s.run.begins(s.counting())
	if err := errors.Join(s.begin(), s.began()); err != nil {
		return err
	}
	for _, name := range s.cfg.Interfaces {
		s.cfg.Changed(name, true)
	}
	if err := s.manager.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if s.cfg.Started != nil {
		s.cfg.Started(s.manager.Attachments())
	}
	return nil
}

// counting returns the time since which packets are counted: attaching takes milliseconds for each interface, and the first window has the packets of all of
// them, so its rates are of that time. A continued pin has what was counted since its earlier run.
func (s *Session) counting() int64 {
	if s.pin != nil && s.pin.Adopts() && s.pin.Since() > 0 {
		return s.pin.Since()
	}
	now, first := time.Now(), time.Time{}
	for _, a := range s.manager.Attachments() {
		since := a.Since()
		if since.IsZero() {
			return s.attached
		}
		if first.IsZero() || since.Before(first) {
			first = since
		}
	}
	if first.IsZero() { // no interface is there yet
		return s.attached
	}
	return s.attached - int64(now.Sub(first))
}

// began records in the pin when the present window began, for the run that continues it.
func (s *Session) began() error {
	if s.pin == nil {
		return nil
	}
	return s.pin.Began(s.run.base().window.Start)
}

// begin marks the algorithms of a continued pin whose registers are new: they started in the middle of their first window.
func (s *Session) begin() error {
	if s.pin == nil || len(s.pin.Fresh()) == 0 {
		return nil
	}
	counts, err := s.run.inst.CountsSoFar()
	if err != nil {
		return err
	}
	for _, m := range s.run.members {
		if slices.Contains(s.pin.Fresh(), m.selected.Descriptor.Name) {
			m.since, m.before = max(s.run.base().window.Start+1, s.attached), counts
		}
	}
	return nil
}

// warms reports whether interfaces may appear later, and be attached to TC.
func (cfg *LiveConfig) warms() bool { return cfg.Watched && cfg.Hook != attach.HookXDP }

// warm loads the programs for such an interface in advance, so that attaching it need not wait for verification.
func (s *Session) warm() error {
	for _, egress := range []bool{false, true} {
		if egress && s.cfg.Direction == attach.Ingress || !egress && s.cfg.Direction == attach.Egress {
			continue
		}
		p, err := s.run.inst.Entry(loader.EntryConfig{Kind: loader.TC, Egress: egress})
		if err != nil {
			return err
		}
		if err := p.Close(); err != nil {
			return fmt.Errorf("close entry program: %w", err)
		}
	}
	return nil
}

// measure closes windows and executes calls, until the session is closed or fails. The window up to then is reported in both
// cases.
func (s *Session) measure(ctx context.Context, stop func(), failed <-chan error) {
	err := s.windows(ctx, failed)
	stop()
	// Detach before reading: packets that arrive while the last window is read would be counted in no window.
	end := hostclock.Now()
	err = errors.Join(err, s.manager.Close())
	s.run.detaching = hostclock.Now() - end
	err = errors.Join(err, s.run.closeWindows(hostclock.Now, true, s.run.groups), s.began(), closePin(s.pin), s.run.close())
	s.err = err
	close(s.done)
}

// stubShare: if the duration's remainder after the last whole window is shorter than 1/stubShare of a window, it is added to that
// window. A window of milliseconds has no useful values, and would replace the last full one on a screen.
const stubShare = 20

// boundary is the time when a group's window ends. Where hosts share window ends, a first window that would be too short is merged with
// the next.
func (s *Session) boundary(g *group) int64 {
	start := g.window.Start
	if g.window.Number == 0 {
		start = s.attached
	}
	if s.cfg.Boundary == nil {
		return s.together(start + g.length)
	}
	return s.cfg.Boundary(start+g.length/stubShare, g.length)
}

// together moves the end of a window, by a fortieth of it at most, to a time at which windows of other sessions of an agent end, and controllers without
// traffic are ticked: what wakes an idle process up costs more than what it then does. The windows after it have the usual length.
func (s *Session) together(end int64) int64 {
	if !s.cfg.Watched {
		return end
	}
	grid := min(int64(restEvery), s.run.base().length/stubShare)
	if grid == 0 {
		return end
	}
	return (end + grid/2) / grid * grid
}

func (s *Session) windows(ctx context.Context, failed <-chan error) error {
	for {
		boundary := s.boundary(s.run.base())
		next := time.After(time.Duration(boundary - hostclock.Now())) // immediately, if reading the last window took longer than a window
		if s.cfg.Duration > 0 && s.end-boundary < s.run.base().length/stubShare {
			next = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case call := <-s.calls:
			call()
		case <-next:
			if err := errors.Join(s.run.closeWindows(hostclock.Now, false, s.run.ending(boundary, s.boundary)), s.began()); err != nil {
				return err
			}
		}
	}
}

// call executes f on the session's goroutine.
func (s *Session) call(f func() error) error {
	result := make(chan error, 1)
	select {
	case s.calls <- func() { result <- f() }:
		return <-result
	case <-s.done:
		return ErrEnded
	}
}

// KeepSnapshots sets whether lines include the snapshot of their window, from the next window on.
func (s *Session) KeepSnapshots(on bool) error {
	return s.call(func() error { s.run.cfg.Snapshots = on; return nil })
}

// Alone is the reason why a session that was to share programs has programs of its own; nil otherwise.
func (s *Session) Alone() error { return s.run.inst.Alone() }

// Done is closed when the session has ended, by Close or because it failed.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close ends the session: it detaches, reports the last window, and removes everything that is not pinned.
func (s *Session) Close() error {
	s.cancel()
	<-s.done
	return s.err
}

// Status of a session.
type Status struct {
	Name       string
	Opened     time.Time
	Interfaces []Interface // as configured, by name
	Algorithms []string    // in the order of the chain
	Windows    int         // finished
}

// Interface of a session.
type Interface struct {
	Name     string
	Attached bool // false: it has disappeared, and is attached when it reappears
}

// Status returns the state of the session.
func (s *Session) Status() (st Status, err error) {
	err = s.call(func() error {
		st = Status{Name: s.cfg.Name, Opened: s.opened, Windows: s.run.base().window.Number}
		for _, m := range s.run.members {
			st.Algorithms = append(st.Algorithms, m.selected.Descriptor.Name)
		}
		live := s.manager.Attachments()
		for _, name := range s.cfg.Interfaces {
			attached := slices.ContainsFunc(live, func(a *attach.Attachment) bool { return a.Interface == name })
			st.Interfaces = append(st.Interfaces, Interface{name, attached})
		}
		return nil
	})
	return st, err
}
