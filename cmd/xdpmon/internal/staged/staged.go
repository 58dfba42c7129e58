// Package staged runs the demonstrations: handshakes over an emulated link with the exact delays, and incidents on a timetable with all measuring algorithms.
package staged

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/check"
	"github.com/xdpmon/xdpmon/demo/incidents"
	"github.com/xdpmon/xdpmon/demo/scene"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Output is the interface of a demonstration to the program that shows it.
type Output struct {
	Live   func(context.Context, session.LiveConfig) error
	Emit   func(report.Line) error // a window
	Draw   func(report.Line) error // a line that is not a window
	Notice func(format string, args ...any)
	Start  func(interfaces []string, attached []*attach.Attachment)
	Fail   func(error) // ends the run
}

// Handshakes builds two hosts, measures between them, and removes them again, also after errors. offset is the real-time clock less that of the windows, ns.
func Handshakes(ctx context.Context, o Output, cfg session.LiveConfig, traffic scene.Traffic, offset int64) (err error) {
	truth := scene.NewTruth(offset)
	network, err := scene.NewNetwork(traffic, truth)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	o.Notice("%s", traffic.Describe())
	measuring, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	cfg.Interfaces = []string{network.Iface()}
	cfg.Emit = func(l report.Line) error {
		window, summary := truth.Beside(l)
		if err := o.Emit(window); err != nil || summary == nil {
			return err
		}
		return o.Draw(*summary)
	}
	cfg.Started = func(attached []*attach.Attachment) {
		o.Start(cfg.Interfaces, attached)
		network.Begin(ctx, o.Fail)
		go network.Wind(ctx, truth, end)
	}
	err = network.InMiddle(func() error { return o.Live(measuring, cfg) })
	if err == nil && truth.Total() == 0 {
		err = fmt.Errorf("demo: no handshake was completed; `xdpmon features` shows what this kernel can do")
	}
	return err
}

// slicesOfOffices are the slices of ahab; nothing is dropped. Their capacity is twice the link's, so that a full link is found by its queue.
var slicesOfOffices = fmt.Sprintf("{capacity: %.0fMbit, slices: [{name: office-1, match: {sources: [10.20.1.0/24]}, user: source}, {name: office-2, match: {sources: [10.20.2.0/24]}, user: source}, "+
	"{name: office-3, match: {sources: [10.20.3.0/24]}, user: source}]}", 2*incidents.LinkRate/1e6)

// Passes are the sessions of staged incidents, each an instance: those that findings need, with all other algorithms in the first one.
func Passes() []check.Pass {
	list := check.Passes()
	all := &list[0]
	all.Algorithms = append(all.Algorithms, "rtt-array", "carpe", "ahab")
	all.Set = append(all.Set, "ahab.config="+slicesOfOffices, "ahab.dry-run=true")
	return list
}

// stage is a run of staged incidents.
type stage struct {
	Output
	world *incidents.World
	list  []session.LiveConfig

	ready    sync.WaitGroup
	all      atomic.Bool // everything is attached
	mu       sync.Mutex  // of the fields below, and of the output
	attached []*attach.Attachment
	noticed  map[string]bool // all sessions attach to the same interface
}

// Incidents builds the network, measures on its router, one session for each configuration, and stages incidents until ctx ends or the time is over (0: never).
func Incidents(ctx context.Context, o Output, seed uint64, configs []session.LiveConfig, took time.Duration) (err error) {
	world, err := incidents.New(seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	o.Notice("%s", incidents.Describe())
	o.Notice("attaching all algorithms; the timetable follows")
	if err := world.Begin(); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := &stage{Output: o, world: world, list: configs, noticed: map[string]bool{}}
	return s.run(ctx, end, took)
}

func (s *stage) run(ctx context.Context, end func(), took time.Duration) error {
	s.ready.Add(len(s.list))
	results := make(chan error, len(s.list))
	for _, cfg := range s.list {
		go func() { results <- s.measure(ctx, cfg) }()
	}
	var playing sync.WaitGroup
	playing.Go(func() { s.play(ctx, end, took) })
	var errs []error
	for range s.list {
		if err := <-results; err != nil {
			errs = append(errs, err)
		}
		end() // a session that ends, for any reason, ends all
	}
	playing.Wait()
	return errors.Join(errs...)
}

// measure runs a session in the router.
func (s *stage) measure(ctx context.Context, cfg session.LiveConfig) error {
	ready := sync.OnceFunc(s.ready.Done)
	defer ready()
	cfg.Interfaces, cfg.Notice = []string{incidents.Interface}, s.once
	cfg.Emit = func(l report.Line) error {
		if !s.all.Load() { // some sessions do not measure yet, and findings would lack their explanations
			return nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.Emit(l)
	}
	cfg.Started = func(attached []*attach.Attachment) {
		s.mu.Lock()
		s.attached = append(s.attached, attached...)
		s.mu.Unlock()
		ready()
	}
	err := s.world.Router().Run(func() error { return s.Live(ctx, cfg) })
	if err != nil {
		err = fmt.Errorf("demo: instance %s: %w", cfg.Name, err)
	}
	return err
}

// once shows a notice of a session unless another one had the same.
func (s *stage) once(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	again := s.noticed[text]
	s.noticed[text] = true
	s.mu.Unlock()
	if !again {
		s.Notice("%s", text)
	}
}

// play stages the incidents when everything is attached.
func (s *stage) play(ctx context.Context, end func(), took time.Duration) {
	s.ready.Wait()
	if ctx.Err() != nil {
		return
	}
	s.Start([]string{incidents.Interface}, s.attached)
	s.all.Store(true)
	for _, line := range Timetable() {
		s.Notice("%s", line)
	}
	if took > 0 {
		time.AfterFunc(took, end)
	}
	err := s.world.Play(ctx, func(round int, i incidents.Incident) {
		s.Notice("incident begins: %s; expect %s", i.What, i.Expect())
	}, func(round int, i incidents.Incident) { s.Notice("incident over: %s %s", i.Kind, i.Subject) })
	if err != nil {
		s.Fail(err)
	}
}

// Timetable is a line for each incident.
func Timetable() []string {
	lines := []string{"the first 30 s are the baseline; then, after the start:"}
	for n, i := range incidents.All {
		lines = append(lines, fmt.Sprintf("  %s  %-28s %s", clock(incidents.Begins(n)), strings.TrimSpace(string(i.Kind)), i.What))
	}
	return append(lines, fmt.Sprintf("  %s  all of it again; each incident lasts %v; its finding ends 5 to 20 s later, that of a scan or a flood 45 s later", clock(incidents.Begins(0)+incidents.Round()), incidents.Lasting))
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
