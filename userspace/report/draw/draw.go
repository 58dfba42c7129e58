// Package draw shows a run to whoever started it, and waits for nobody who does not read.
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

// Drawer is the subscriber that shows a run to whoever started it. It has a goroutine of its own, so that a reader who does
// not read delays what is shown and nothing that is measured.
type Drawer struct {
	sink   report.Sink
	sub    *feed.Subscription
	failed func(error) // told once, when nothing can be shown any more
	done   chan struct{}

	mu     sync.Mutex
	before func() // clears the progress line
	err    error
}

// New begins to draw what the subscription hands over.
func New(sink report.Sink, sub *feed.Subscription, failed func(error)) *Drawer {
	d := &Drawer{sink: sink, sub: sub, failed: failed, done: make(chan struct{}), before: func() {}}
	go d.run()
	return d
}

// Clearing sets what is called before anything is drawn.
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

// show draws an event, unless drawing has failed before: then the rest is read and thrown away.
func (d *Drawer) show(e feed.Event, missed uint64) {
	d.mu.Lock()
	before := d.before
	d.mu.Unlock()
	if d.err != nil {
		return
	}
	before()
	if missed > 0 {
		d.sink.Notice(fmt.Sprintf("%d reports were not shown here: whoever reads this output was too slow for them; nothing else missed any", missed))
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

// Patience is how long the end of a run waits for a reader that does not read.
const Patience = 3 * time.Second

// errNotRead says that the end of the output was lost to a reader that did not read.
var errNotRead = errors.New("whoever reads the output does not: the last reports are lost")

// Close waits until everything is shown; the feed has been closed before.
func (d *Drawer) Close(after func(time.Duration) <-chan time.Time) error {
	late := after(Patience)
	select {
	case <-d.done:
	case <-late:
		return errNotRead
	}
	d.before()
	return d.sink.Close()
}
