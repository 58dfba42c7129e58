// Package feed is the hub: it publishes all events of a run to any number of subscribers, each with its own queue. A
// subscriber that does not read loses its oldest events, gets their number, and blocks nothing: measuring
// never waits for output. A replay, which has no deadline, may wait for subscribers instead.
package feed

import (
	"context"
	"errors"
	"sync"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrClosed is returned by Next when the run is over and everything was read.
var ErrClosed = errors.New("feed closed")

// Event is one published item: exactly one field is set.
type Event struct {
	Run     *report.Run     // description of the run, also when it changes
	Line    *report.Line    // a finished window of an algorithm
	Notice  string          // a sentence for the operator
	Finding *report.Finding // a finding that starts or ends
}

// Hub publishes events. Its zero value is ready; it is safe for concurrent use.
type Hub struct {
	mu     sync.Mutex
	subs   []*Subscription
	closed bool
}

// Subscription is one reader's queue. One goroutine reads it.
type Subscription struct {
	hub    *Hub
	name   string
	wait   bool
	depth  int
	signal chan struct{} // something changed: an event, or the end
	space  chan struct{} // an event was taken from a full queue

	mu     sync.Mutex
	queue  []Event
	missed uint64 // events that were dropped and not yet reported
	total  uint64 // ... since the start
	closed bool
}

// Options of a subscription.
type Options struct {
	Name  string // in the list of subscribers; "": not listed
	Depth int    // events that may wait; 0: DefaultDepth
	// Wait makes Publish block when the queue is full, instead of dropping events. For readers that may delay the run, as in a
	// replay.
	Wait bool
}

// DefaultDepth is enough for some windows of every algorithm.
const DefaultDepth = 256

// Subscribe adds a subscriber, which gets what is published from now on.
func (h *Hub) Subscribe(o Options) *Subscription {
	if o.Depth <= 0 {
		o.Depth = DefaultDepth
	}
	s := &Subscription{hub: h, name: o.Name, wait: o.Wait, depth: o.Depth, signal: make(chan struct{}, 1), space: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		s.closed = true
		return s
	}
	h.subs = append(h.subs, s)
	return s
}

// Publish passes an event to every subscriber. It waits only for those with the option Wait, and only until ctx ends. Nothing changes what an
// event points to afterwards.
func (h *Hub) Publish(ctx context.Context, e Event) {
	for _, s := range h.subscribers() {
		s.offer(ctx, e)
	}
}

func (h *Hub) subscribers() []*Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*Subscription(nil), h.subs...)
}

// Close ends the feed: subscribers read their queued events, then ErrClosed.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	subs := h.subs
	h.subs = nil
	h.mu.Unlock()
	for _, s := range subs {
		s.end()
	}
}

// Reader is the state of a subscriber.
type Reader struct {
	Name   string
	Queued int
	Missed uint64 // events lost for it since it subscribed
}

// Readers lists the subscribers.
func (h *Hub) Readers() []Reader {
	var list []Reader
	for _, s := range h.subscribers() {
		if s.name == "" {
			continue
		}
		s.mu.Lock()
		list = append(list, Reader{s.name, len(s.queue), s.total})
		s.mu.Unlock()
	}
	return list
}

func (s *Subscription) offer(ctx context.Context, e Event) {
	for !s.put(e) {
		select {
		case <-s.space:
		case <-ctx.Done():
			s.drop()
		}
	}
	wake(s.signal)
}

// put appends; false if the queue of a subscription with Wait is full.
func (s *Subscription) put(e Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return true
	}
	if len(s.queue) >= s.depth {
		if s.wait {
			return false
		}
		s.dropOldest()
	}
	s.queue = append(s.queue, e)
	return true
}

func (s *Subscription) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= s.depth {
		s.dropOldest()
	}
}

// dropOldest keeps the last description of the run, which is needed to read what follows.
func (s *Subscription) dropOldest() {
	at := 0
	if s.queue[0].Run != nil && !s.runAfter(0) && len(s.queue) > 1 {
		at = 1
	}
	s.queue = append(s.queue[:at], s.queue[at+1:]...)
	s.missed++
	s.total++
}

func (s *Subscription) runAfter(i int) bool {
	for _, e := range s.queue[i+1:] {
		if e.Run != nil {
			return true
		}
	}
	return false
}

// Next returns the oldest queued event, and how many were lost before it; it blocks until there is one, ctx ends, or the feed is
// closed (ErrClosed).
func (s *Subscription) Next(ctx context.Context) (e Event, missed uint64, err error) {
	for {
		e, missed, ok, closed := s.take()
		if ok {
			wake(s.space)
			return e, missed, nil
		}
		if closed {
			return Event{}, missed, ErrClosed
		}
		select {
		case <-s.signal:
		case <-ctx.Done():
			return Event{}, 0, ctx.Err()
		}
	}
}

func (s *Subscription) take() (e Event, missed uint64, ok, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return Event{}, s.missed, false, s.closed
	}
	e, missed = s.queue[0], s.missed
	s.queue, s.missed = s.queue[1:], 0
	return e, missed, true, false
}

// Missed is how many events were lost for this reader since it subscribed.
func (s *Subscription) Missed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Leave ends the subscription; queued events are dropped.
func (s *Subscription) Leave() {
	s.hub.without(s)
	s.mu.Lock()
	s.queue = nil
	s.mu.Unlock()
	s.end()
}

// Finish ends the subscription after its queued events: they are read first, then ErrClosed.
func (s *Subscription) Finish() {
	s.hub.without(s)
	s.end()
}

func (h *Hub) without(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, o := range h.subs {
		if o == s {
			h.subs = append(h.subs[:i:i], h.subs[i+1:]...)
			break
		}
	}
}

func (s *Subscription) end() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	wake(s.signal)
	wake(s.space)
}

func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
