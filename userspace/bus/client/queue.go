package client

import "github.com/xdpmon/xdpmon/userspace/bus"

// sealed is an encoded batch.
type sealed struct {
	number uint64
	holds  content
	data   []byte
}

// content counts what is in a batch, or was lost.
type content struct{ windows, messages, begins uint64 }

func (c *content) add(o content) {
	c.windows, c.messages, c.begins = c.windows+o.windows, c.messages+o.messages, c.begins+o.begins
}

func contentOf(items ...bus.Item) (c content) {
	for _, i := range items {
		switch {
		case i.Begins:
			c.begins++
		case i.Message != nil:
			c.messages++
		default:
			c.windows++
		}
	}
	return c
}

// queue holds batches from their creation until they are used, within a bound. It is not safe for concurrent use.
type queue struct {
	limit, bytes int
	list         []sealed
	last         uint64  // number of the latest batch
	sent         uint64  // number of the latest batch that was sent
	received     uint64  // ... that the coordinator has received
	lost         content // removed before it was received
}

// inFlight bounds what is sent and not received, for a coordinator that is slow or restarting.
const (
	inFlightBatches = 128
	inFlightBytes   = 2 << 20
)

// oldest is the first number that can still be sent.
func (q *queue) oldest() uint64 {
	if len(q.list) == 0 {
		return q.last + 1
	}
	return q.list[0].number
}

// put appends a batch; the oldest are dropped beyond the bound.
func (q *queue) put(s sealed) {
	q.last = s.number
	q.list = append(q.list, s)
	q.bytes += len(s.data)
	for q.bytes > q.limit && len(q.list) > 1 {
		q.drop()
	}
}

func (q *queue) drop() {
	s := q.list[0]
	if s.number > q.received {
		q.lost.add(s.holds)
	}
	q.list, q.bytes = q.list[1:], q.bytes-len(s.data)
}

// next is the next batch to be sent, if there is one.
func (q *queue) next() (sealed, bool) {
	number := max(q.sent, q.received) + 1
	number = max(number, q.oldest())
	if number > q.last {
		return sealed{}, false
	}
	flying, from := 0, max(q.received+1, q.oldest())
	for n := from; n < number; n++ {
		flying += len(q.at(n).data)
	}
	return q.at(number), flying < inFlightBytes && number < from+inFlightBatches
}

// at is the batch of a number: queued batches are consecutive.
func (q *queue) at(number uint64) sealed { return q.list[number-q.oldest()] }

// answered applies the numbers of an answer; back is true if batches must be repeated from there on.
func (q *queue) answered(received, used uint64, back bool) {
	q.received = min(received, q.last)
	if back || q.sent < q.received {
		q.sent = q.received
	}
	for len(q.list) > 0 && q.list[0].number <= used && q.list[0].number <= q.received {
		q.drop()
	}
}
