// Package draw shows a run to the user who started it, without letting a blocked output delay the measurement.
package draw

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Drawer is the subscriber that shows a run to the user. It has a goroutine of its own, so that a blocked output delays only what
// is shown, and no measurement.
type Drawer struct {
	sink   report.Sink
	sub    *feed.Subscription
	failed func(error) // called once, when the output fails
	done   chan struct{}

	mu     sync.Mutex
	before func() // clears the progress line
	err    error
}

// New starts drawing the subscription's events.
func New(sink report.Sink, sub *feed.Subscription, failed func(error)) *Drawer {
	d := &Drawer{sink: sink, sub: sub, failed: failed, done: make(chan struct{}), before: func() {}}
	go d.run()
	return d
}

// Clearing sets a function that is called before each drawing, to clear a progress line.
func (d *Drawer) Clearing(before func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = before
}

func (d *Drawer) run() {
	defer close(d.done)
	for {
		e, missed, err := d.sub.Next(context.Background())
		if err == nil || missed > 0 {
			d.show(e, missed)
		}
		if errors.Is(err, feed.ErrClosed) {
			return
		}
	}
}

// show draws an event. After drawing has failed, events are discarded.
func (d *Drawer) show(e feed.Event, missed uint64) {
	d.mu.Lock()
	before := d.before
	d.mu.Unlock()
	if d.err != nil {
		return
	}
	before()
	if missed > 0 {
		d.sink.Notice(fmt.Sprintf("%d reports were not shown: this output was too slow; other outputs have them", missed))
	}
	switch {
	case e.Run != nil:
		d.err = d.sink.Start(*e.Run)
	case e.Line != nil:
		d.err = d.sink.Line(*e.Line)
	case e.Finding != nil:
		if f, ok := d.sink.(report.Finder); ok {
			d.err = f.Finding(*e.Finding)
		}
	case e.Notice != "":
		d.sink.Notice(e.Notice)
	}
	if d.err != nil {
		d.failed(d.err)
	}
}

// Patience is how long the end of a run waits for a blocked output.
const Patience = 3 * time.Second

// errBlocked is returned if the last reports could not be written.
var errBlocked = errors.New("output blocked: the last reports are lost")

// Close waits until everything is shown, at most Patience; the feed must be closed before.
func (d *Drawer) Close(after func(time.Duration) <-chan time.Time) error {
	late := after(Patience)
	select {
	case <-d.done:
	case <-late:
		return errBlocked
	}
	d.before()
	return d.sink.Close()
}
