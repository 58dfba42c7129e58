package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
)

// owner is the only goroutine that accesses an algorithm during a live run: it ticks its control loop and reads its windows, so
// an algorithm needs no lock, and a slow window of one delays no tick of another.
type owner struct {
	tasks chan func()
	done  sync.WaitGroup
	beats *beats // nil: a controller has a timer of its own
}

// own starts a goroutine for every algorithm, until stop is called; an error of a control loop is sent to failed, and its algorithm
// still reports its windows.
func (r *runner) own(ctx context.Context) (stop func(), failed <-chan error) {
	r.owning, r.failed = ctx, make(chan error, maps.ChainSlots)
	for _, m := range r.members {
		r.begin(m)
	}
	return func() {
		for _, m := range r.members {
			r.end(m)
		}
	}, r.failed
}

// begin starts a member's goroutine and registers it for messages.
func (r *runner) begin(m *member) {
	if b, ok := m.instance.(algo.WindowOpener); ok {
		b.Begin(r.inst.Control().BankOf(m.group.number))
	}
	m.owner = newOwner(r.owning, m, r.failed, r.beats(m))
	if m.messenger != nil {
		r.messengers.Store(m.messenger.name, m.messenger)
	}
}

// end stops the goroutine and unregisters the member, unless another member of the same name is already registered.
func (r *runner) end(m *member) {
	if m.messenger != nil {
		r.messengers.CompareAndDelete(m.messenger.name, m.messenger)
	}
	m.owner.stop()
	m.owner = nil
}

func newOwner(ctx context.Context, m *member, failed chan<- error, b *beats) *owner {
	o := &owner{tasks: make(chan func()), beats: b}
	o.done.Go(func() { o.run(ctx, m, failed) })
	return o
}

func (o *owner) run(ctx context.Context, m *member, failed chan<- error) {
	c, _ := m.instance.(algo.Controller)
	ticks := o.ticks(c)
	defer ticks.end()
	due := ticks.due
	sends, stop := m.messenger.due()
	defer stop()
	for {
		var err error
		select {
		case task, open := <-o.tasks:
			if !open {
				return
			}
			task()
		case data := <-m.messenger.received():
			m.messenger.deliver(data)
		case <-sends:
			if err = m.messenger.send(hostclock.Now()); err != nil {
				sends = nil
			}
		case <-due:
			if ctx.Err() != nil {
				due = nil // the run ends: only its last window remains
				continue
			}
			m.ticked = true
			if err = c.Tick(hostclock.Now()); err != nil {
				err, due = fmt.Errorf("control %s: %w", m.selected.Descriptor.Name, err), nil
			}
			ticks.next()
		}
		if err != nil {
			select {
			case failed <- err:
			default: // another error was sent before, and one is enough to end the run
			}
		}
	}
}

// ticks are the times at which a controller is ticked: by a timer of its own, or by the shared beats. nil: the algorithm is no
// controller.
type ticks struct {
	due   <-chan time.Time
	timer *time.Timer // nil: beats
	every int64
}

func (o *owner) ticks(c algo.Controller) *ticks {
	switch {
	case c == nil:
		return &ticks{}
	case o.beats != nil:
		return &ticks{due: o.beats.due}
	}
	t := time.NewTimer(untilTick(c.IntervalNS(), hostclock.Now()))
	return &ticks{due: t.C, timer: t, every: c.IntervalNS()}
}

func (t *ticks) next() {
	if t.timer != nil {
		t.timer.Reset(untilTick(t.every, hostclock.Now()))
	}
}

func (t *ticks) end() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// untilTick is the time to the next whole multiple of an interval: algorithms tick together, so that an idle machine wakes up once for
// all of them.
func untilTick(interval, now int64) time.Duration { return time.Duration(interval - now%interval) }

// do runs a task on the owner's goroutine, and then done. Without an owner (in a replay, and after the end) there is no concurrent
// access, and the caller runs it.
func (o *owner) do(task, done func()) {
	if o == nil {
		task()
		done()
		return
	}
	o.tasks <- func() { task(); done() }
}

func (o *owner) stop() {
	o.beats.end()
	close(o.tasks)
	o.done.Wait()
}
