package top

import (
	"context"
	"time"

	"github.com/xdpmon/xdpmon/userspace/top/client"
	"github.com/xdpmon/xdpmon/userspace/top/model"
)

const (
	// gather is how long to wait for windows that end together, and atMost the minimum interval of requests for them.
	gather = 150 * time.Millisecond
	atMost = time.Second
	// retryFirst and retryLast are the first and the longest delay before a reconnection.
	retryFirst = time.Second
	retryLast  = 10 * time.Second
)

// fetcher requests what the view needs, one request at a time.
type fetcher struct {
	ctx     context.Context
	l       *loop
	answers chan model.Answer
	timer   *time.Timer
	busy    bool
	again   bool
	waiting bool
	last    time.Time
}

func newFetcher(ctx context.Context, l *loop) *fetcher {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &fetcher{ctx: ctx, l: l, answers: make(chan model.Answer, 1), timer: t}
}

// now sends the request immediately, or when the answer to the last one has arrived.
func (f *fetcher) now() {
	if f.busy {
		f.again = true
		return
	}
	f.timer.Stop()
	f.busy, f.again, f.waiting, f.last = true, false, false, time.Now()
	r := f.l.m.Request()
	f.l.start(func() {
		a := model.Fetch(f.ctx, f.l.client, r)
		select {
		case f.answers <- a:
		case <-f.ctx.Done():
		}
	})
}

// soon sends it after a short delay, together with what happens until then.
func (f *fetcher) soon() {
	if f.busy || f.waiting {
		f.again = f.busy || f.again
		return
	}
	f.waiting = true
	f.timer.Reset(max(gather, atMost-time.Since(f.last)))
}

func (f *fetcher) due() {
	f.waiting = false
	f.now()
}

func (f *fetcher) done() {
	f.busy = false
	if f.again {
		f.again = false
		f.soon()
	}
}

// follow reads the stream, and reopens it when it ends, until ctx ends.
func follow(ctx context.Context, c *client.Client, to chan<- any, ended <-chan struct{}) {
	send := func(e any) {
		select {
		case to <- e:
		case <-ctx.Done():
		}
	}
	for wait := retryFirst; ctx.Err() == nil; wait = min(2*wait, retryLast) {
		err := c.Follow(ctx, func(e client.Event) {
			if e.Kind == client.Hello {
				wait = retryFirst
			}
			send(e)
		})
		if ctx.Err() != nil {
			return
		}
		send(err)
		select {
		case <-time.After(wait):
		case <-ended:
			return
		case <-ctx.Done():
		}
	}
}
