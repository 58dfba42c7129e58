package coordinator

import (
	"sync"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// Bounds of an agent's queued messages: an agent that follows the protocol has fewer in flight.
const (
	mailboxMessages = 512
	mailboxBytes    = 8 << 20
)

// message is an undecoded message of an agent.
type message struct {
	kind bus.Kind
	data []byte
}

// inbox queues agents' messages until they are handled, in one mailbox an agent, served round robin: an agent that sends too much fills only
// its own.
type inbox struct {
	mu    sync.Mutex
	boxes map[string]*mailbox
	turns []string // agents with messages, in the order of service
	some  chan struct{}
}

type mailbox struct {
	messages []message
	bytes    int
}

func newInbox() *inbox { return &inbox{boxes: map[string]*mailbox{}, some: make(chan struct{}, 1)} }

// put queues a message; false if the mailbox is full.
func (b *inbox) put(name string, m message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.boxes[name]
	if box == nil {
		box = &mailbox{}
		b.boxes[name] = box
	}
	if len(box.messages) >= mailboxMessages || box.bytes+len(m.data) > mailboxBytes {
		return false
	}
	if len(box.messages) == 0 {
		b.turns = append(b.turns, name)
	}
	box.messages, box.bytes = append(box.messages, m), box.bytes+len(m.data)
	select {
	case b.some <- struct{}{}:
	default:
	}
	return true
}

// take returns the next message, of the next agent in turn.
func (b *inbox) take() (name string, m message, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.turns) == 0 {
		return "", message{}, false
	}
	name = b.turns[0]
	box := b.boxes[name]
	m = box.messages[0]
	box.messages, box.bytes = box.messages[1:], box.bytes-len(m.data)
	b.turns = b.turns[1:]
	if len(box.messages) > 0 {
		b.turns = append(b.turns, name)
	} else {
		delete(b.boxes, name)
	}
	return name, m, true
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
