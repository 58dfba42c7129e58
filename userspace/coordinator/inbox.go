package coordinator

import (
	"sync"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// Bounds of what may wait for the coordinator: an agent that keeps to the protocol has less on its way.
const (
	mailboxMessages = 512
	mailboxBytes    = 8 << 20
)

// letter is a message of an agent.
type letter struct {
	kind bus.Kind
	data []byte
}

// inbox holds what agents have said until it is looked at, each in a box of its own: one that says too much fills its own, and everybody's
// turn comes as often.
type inbox struct {
	mu    sync.Mutex
	boxes map[string]*mailbox
	turns []string // who has something, in order
	some  chan struct{}
}

type mailbox struct {
	letters []letter
	bytes   int
}

func newInbox() *inbox { return &inbox{boxes: map[string]*mailbox{}, some: make(chan struct{}, 1)} }

// put refuses what has no room.
func (b *inbox) put(name string, l letter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.boxes[name]
	if m == nil {
		m = &mailbox{}
		b.boxes[name] = m
	}
	if len(m.letters) >= mailboxMessages || m.bytes+len(l.data) > mailboxBytes {
		return false
	}
	if len(m.letters) == 0 {
		b.turns = append(b.turns, name)
	}
	m.letters, m.bytes = append(m.letters, l), m.bytes+len(l.data)
	select {
	case b.some <- struct{}{}:
	default:
	}
	return true
}

// take is the next letter of whose turn it is.
func (b *inbox) take() (name string, l letter, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.turns) == 0 {
		return "", letter{}, false
	}
	name = b.turns[0]
	m := b.boxes[name]
	l = m.letters[0]
	m.letters, m.bytes = m.letters[1:], m.bytes-len(l.data)
	b.turns = b.turns[1:]
	if len(m.letters) > 0 {
		b.turns = append(b.turns, name)
	} else {
		delete(b.boxes, name)
	}
	return name, l, true
}

// more wakes the reader again, if something is left.
func (b *inbox) more() {
	b.mu.Lock()
	left := len(b.turns) > 0
	b.mu.Unlock()
	if left {
		select {
		case b.some <- struct{}{}:
		default:
		}
	}
}
