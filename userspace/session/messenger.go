package session

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Message is a message of an instance to its algorithm's coordinator.
type Message struct {
	Algorithm string
	Time      int64  // when, on the packets' clock
	Begins    bool   // the instance has no state from its coordinator; without Data
	Lost      uint64 // messages dropped since the last one, because they were too large or too many
	Data      []byte
}

// maxReceived bounds the coordinator's messages queued for an instance.
const maxReceived = 256

// messenger carries messages between an instance and the bus. Its owner's goroutine calls everything but receive.
type messenger struct {
	algo.Messenger
	name    string
	publish func(Message)
	notice  func(format string, args ...any)
	queue   chan []byte
	missed  atomic.Bool // a message was dropped
	lost    uint64
}

// messenger of a member; nil if its algorithm sends no messages, or there is no bus.
func (r *runner) messenger(m *member) *messenger {
	s, ok := m.instance.(algo.Messenger)
	if !ok || r.cfg.Publish == nil {
		return nil
	}
	k := &messenger{Messenger: s, name: m.selected.Descriptor.Name, publish: r.cfg.Publish, notice: r.cfg.Notice, queue: make(chan []byte, maxReceived)}
	k.missed.Store(true)
	return k
}

// receive queues a message of the coordinator, from any goroutine. It never blocks: if the queue is full the message is dropped, and the
// coordinator sends its state again.
func (s *messenger) receive(data []byte) {
	select {
	case s.queue <- data:
	default:
		s.missed.Store(true)
	}
}

// received is the queue of messages; nil for an algorithm without a messenger.
func (s *messenger) received() <-chan []byte {
	if s == nil {
		return nil
	}
	return s.queue
}

// due ticks when messages are to be sent; nil without a messenger.
func (s *messenger) due() (ticks <-chan time.Time, stop func()) {
	if s == nil {
		return nil, func() {}
	}
	t := time.NewTicker(algo.MessageNS)
	return t.C, t.Stop
}

func (s *messenger) deliver(data []byte) {
	if err := s.Receive(data); err != nil && s.notice != nil {
		s.notice("%s refuses its coordinator's settings: %v", s.name, err)
	}
}

// send publishes the instance's messages.
func (s *messenger) send(now int64) error {
	if s == nil {
		return nil
	}
	if s.missed.Swap(false) {
		s.publish(Message{Algorithm: s.name, Time: now, Begins: true})
	}
	list, err := s.Send(now)
	if err != nil {
		return fmt.Errorf("messages of %s: %w", s.name, err)
	}
	for n, data := range list {
		if n >= algo.MaxMessages || len(data) > algo.MaxMessage || len(data) == 0 {
			s.lost++
			continue
		}
		s.publish(Message{Algorithm: s.name, Time: now, Lost: s.lost, Data: data})
		s.lost = 0
	}
	return nil
}

// Receive passes a message of the coordinator to an algorithm of the session, or drops it if the algorithm does not run. It may be called from
// any goroutine.
func (s *Session) Receive(algorithm string, data []byte) {
	if k, ok := s.run.messengers.Load(algorithm); ok {
		k.(*messenger).receive(data)
	}
}

// Renew marks messages to the algorithms as lost, so that their coordinators send the whole state again.
func (s *Session) Renew() {
	s.run.messengers.Range(func(_, k any) bool { k.(*messenger).missed.Store(true); return true })
}
