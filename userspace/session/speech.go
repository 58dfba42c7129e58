package session

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Speech is what an instance of an algorithm says to its coordinator.
type Speech struct {
	Algorithm string
	Time      int64  // when, on the packets' clock
	Begins    bool   // it knows nothing of what it was told before; there is no Data then
	Lost      uint64 // messages that were too large or too many, since the one before
	Data      []byte
}

// heardAtOnce is how many messages of a coordinator may wait for an algorithm.
const heardAtOnce = 256

// speaker carries messages between an instance that speaks and whoever carries them on. Its owner's goroutine calls everything but told.
type speaker struct {
	algo.Messenger
	name   string
	say    func(Speech)
	notice func(format string, args ...any)
	ear    chan []byte
	missed atomic.Bool // something was told that it has not heard
	lost   uint64
}

// speaker is that of a member, nil where it does not speak, or nobody listens.
func (r *runner) speaker(m *member) *speaker {
	s, ok := m.instance.(algo.Messenger)
	if !ok || r.cfg.Say == nil {
		return nil
	}
	k := &speaker{Messenger: s, name: m.selected.Descriptor.Name, say: r.cfg.Say, notice: r.cfg.Notice, ear: make(chan []byte, heardAtOnce)}
	k.missed.Store(true)
	return k
}

// told takes what the coordinator says, from any goroutine. It never waits: what has no room is missed, and the coordinator says
// everything again.
func (s *speaker) told(data []byte) {
	select {
	case s.ear <- data:
	default:
		s.missed.Store(true)
	}
}

// ears is where messages wait; nil for nobody, from whom none come.
func (s *speaker) ears() <-chan []byte {
	if s == nil {
		return nil
	}
	return s.ear
}

// due is when it is asked; nil for nobody.
func (s *speaker) due() (ticks <-chan time.Time, stop func()) {
	if s == nil {
		return nil, func() {}
	}
	t := time.NewTicker(algo.SpeakNS)
	return t.C, t.Stop
}

func (s *speaker) hear(data []byte) {
	if err := s.Hear(data); err != nil && s.notice != nil {
		s.notice("%s refuses its coordinator's settings: %v", s.name, err)
	}
}

// speak hands on what there is to be said.
func (s *speaker) speak(now int64) error {
	if s == nil {
		return nil
	}
	if s.missed.Swap(false) {
		s.say(Speech{Algorithm: s.name, Time: now, Begins: true})
	}
	list, err := s.Speak(now)
	if err != nil {
		return fmt.Errorf("speak for %s: %w", s.name, err)
	}
	for n, data := range list {
		if n >= algo.MaxSpoken || len(data) > algo.MaxMessage || len(data) == 0 {
			s.lost++
			continue
		}
		s.say(Speech{Algorithm: s.name, Time: now, Lost: s.lost, Data: data})
		s.lost = 0
	}
	return nil
}

// Hear carries what the coordinator says to an algorithm of the session; what is not there has not begun. It may come from any goroutine.
func (s *Session) Hear(algorithm string, data []byte) {
	if k, ok := s.run.speakers.Load(algorithm); ok {
		k.(*speaker).told(data)
	}
}

// Renew says that what the algorithms were told may be gone: they begin anew.
func (s *Session) Renew() {
	s.run.speakers.Range(func(_, k any) bool { k.(*speaker).missed.Store(true); return true })
}
