package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// drawer is the subscriber that shows a run to whoever started it. It has a goroutine of its own, so that a reader who does
// not read delays what is shown and nothing that is measured.
type drawer struct {
	sink   report.Sink
	sub    *feed.Subscription
	failed func(error) // told once, when nothing can be shown any more
	done   chan struct{}

	mu     sync.Mutex
	before func() // clears the progress line
	err    error
}

func newDrawer(sink report.Sink, sub *feed.Subscription, failed func(error)) *drawer {
	d := &drawer{sink: sink, sub: sub, failed: failed, done: make(chan struct{}), before: func() {}}
	go d.run()
	return d
}

// clearing sets what is called before anything is drawn.
func (d *drawer) clearing(before func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = before
}

func (d *drawer) run() {
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
func (d *drawer) show(e feed.Event, missed uint64) {
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
	case e.Notice != "":
		d.sink.Notice(e.Notice)
	}
	if d.err != nil {
		d.failed(d.err)
	}
}

// drawPatience is how long the end of a run waits for a reader that does not read.
const drawPatience = 3 * time.Second

// errNotRead says that the end of the output was lost to a reader that did not read.
var errNotRead = errors.New("whoever reads the output does not: the last reports are lost")

// close waits until everything is shown; the feed has been closed before.
func (d *drawer) close(after func(time.Duration) <-chan time.Time) error {
	late := after(drawPatience)
	select {
	case <-d.done:
	case <-late:
		return errNotRead
	}
	d.before()
	return d.sink.Close()
}
