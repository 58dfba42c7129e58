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

// ErrAnew is returned by Apply where a session that shares its programs cannot change to these while it runs: it has to be opened anew, by itself.
var ErrAnew = share.ErrNotShared

// Session owns programs, registers and windows of one set of interfaces, from Open to Close. Several live in one process. Its calls may
// come from any goroutine; one goroutine of its own carries them out, between windows.
type Session struct {
	cfg     LiveConfig
	run     *runner
	pin     *pin.Pin
	manager *watch.Manager

	calls  chan func()
	cancel context.CancelFunc
	done   chan struct{}
	err    error // behind done
	opened time.Time
	end    int64 // when the duration is over, if there is one; monotonic
}

// Open loads and attaches; the session measures when it returns. ctx ends a load that takes too long, not the session: Close does.
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

// beFrugal trades some processor time of a start, which makes much garbage, for half of its memory. GOGC in the environment says otherwise.
var beFrugal = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(75)
	}
})

// loadsEnd is how long no session is opened before the memory of loading is given back: collecting garbage for each of 200 would take longer
// than loading them.
const loadsEnd = 300 * time.Millisecond

var loaded struct {
	sync.Mutex
	timer *time.Timer
}

// giveBack returns to the system what loading took, once the last of several sessions is open: the proof takes several times what measuring does.
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
	// Attaching takes longer than the moment in which packets are counted already: rates are from here on.
	s.run.window = report.Window{Start: hostclock.Now()}
	if err := s.begin(); err != nil {
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

// begin notes which algorithms of a pin that goes on have registers that do not: their first window is one that began before them.
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
			m.since, m.before = s.run.window.Start+1, counts
		}
	}
	return nil
}

// warms reports whether interfaces appear later, and where: packets go through TC where interfaces come and go.
func (cfg *LiveConfig) warms() bool { return cfg.Watched && cfg.Hook != attach.HookXDP }

// warm loads what such an interface will need, so that it need not wait for a proof.
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

// measure closes one window after the other and carries out calls, until the session is closed or fails. What was measured up to
// then is reported either way.
func (s *Session) measure(ctx context.Context, stop func(), failed <-chan error) {
	err := s.windows(ctx, failed)
	stop()
	// Detach before reading: what arrives while the last window is read would be counted nowhere.
	end := hostclock.Now()
	err = errors.Join(err, s.manager.Close())
	err = errors.Join(err, s.run.closeWindow(end, true), closePin(s.pin), s.run.close())
	s.err = err
	close(s.done)
}

// stubShare: what the duration leaves behind the last whole window belongs to it when it is shorter than this part of one. A window of
// milliseconds says nothing, and would stand in the last window's place.
const stubShare = 20

// boundary is when the window ends. Where hosts share ends, one that would be a stub belongs to the next.
func (s *Session) boundary() int64 {
	start := s.run.window.Start
	if s.cfg.Boundary == nil {
		return start + int64(s.cfg.Window)
	}
	return s.cfg.Boundary(start+int64(s.cfg.Window)/stubShare, int64(s.cfg.Window))
}

func (s *Session) windows(ctx context.Context, failed <-chan error) error {
	for {
		boundary := s.boundary()
		next := time.After(time.Duration(boundary - hostclock.Now())) // at once when reading the last window took longer than a window
		if s.cfg.Duration > 0 && s.end-boundary < int64(s.cfg.Window)/stubShare {
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
			if err := s.run.closeWindow(hostclock.Now(), false); err != nil {
				return err
			}
		}
	}
}

// call carries out f on the session's goroutine.
func (s *Session) call(f func() error) error {
	result := make(chan error, 1)
	select {
	case s.calls <- func() { result <- f() }:
		return <-result
	case <-s.done:
		return ErrEnded
	}
}

// KeepSnapshots says whether windows carry what they were made of, from the next one on.
func (s *Session) KeepSnapshots(on bool) error {
	return s.call(func() error { s.run.cfg.Snapshots = on; return nil })
}

// Alone is why a session that was to share its programs has programs of its own; nil where it was not, or does.
func (s *Session) Alone() error { return s.run.inst.Alone() }

// Done is closed when the session has ended, by Close or because it failed.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close ends the session: it detaches, reports the last window, and leaves nothing behind that was not pinned.
func (s *Session) Close() error {
	s.cancel()
	<-s.done
	return s.err
}

// Status of a session.
type Status struct {
	Name       string
	Opened     time.Time
	Interfaces []Interface // as asked for, by name
	Algorithms []string    // in the order of the chain
	Windows    int         // finished
}

// Interface of a session.
type Interface struct {
	Name     string
	Attached bool // false: waiting for it to come back
}

// Status asks the session how it stands.
func (s *Session) Status() (st Status, err error) {
	err = s.call(func() error {
		st = Status{Name: s.cfg.Name, Opened: s.opened, Windows: s.run.window.Number}
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
