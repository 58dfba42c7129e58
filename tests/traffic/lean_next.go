package traffic

import (
	"math"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// leanPause is what a sender that repeats a segment waits for first: more than the 3 ms within which a late segment counts
// as out of order.
const leanPause = 4 * int64(time.Millisecond)

// Next implements Model.
func (m *Lean) Next(p *packet.Packet) bool {
	if m.twice != nil {
		*p, m.twice = *m.twice, nil
		return true
	}
	if !m.step(p) {
		return false
	}
	if m.opts.Mirror > 0 && m.mirror.Float64() < m.opts.Mirror {
		m.copied = *p
		m.twice = &m.copied
	}
	return true
}

// leanSource is the source of the next packet.
type leanSource uint8

const (
	fromNowhere leanSource = iota
	fromTrains
	fromAcks
	fromIdle
	fromStarts
	fromScan
)

func (m *Lean) step(p *packet.Packet) bool {
	for {
		switch m.earliest() {
		case fromNowhere:
			return false
		case fromScan:
			m.probe(p, m.scan)
			m.scan++
			return true
		case fromAcks:
			m.ack(p, m.acks.Pop())
			return true
		case fromIdle:
			e := m.idle.Pop()
			m.begin(e.id, e.time)
		case fromStarts:
			id := m.order[m.begun]
			m.begun++
			m.begin(id, m.flows[id].start)
		case fromTrains:
			if m.advance(p, m.trains.Pop()) {
				return true
			}
		}
	}
}

func (m *Lean) earliest() leanSource {
	best, from := int64(math.MaxInt64), fromNowhere
	look := func(due int64, source leanSource) {
		if due < best {
			best, from = due, source
		}
	}
	if len(m.trains) > 0 {
		look(m.trains[0].time, fromTrains)
	}
	if len(m.acks) > 0 {
		look(m.acks[0].time, fromAcks)
	}
	if len(m.idle) > 0 {
		look(m.idle[0].time, fromIdle)
	}
	if m.begun < len(m.order) {
		look(m.flows[m.order[m.begun]].start, fromStarts)
	}
	if m.scan < m.opts.Scan {
		look(Start+int64(float64(m.scan)/float64(m.opts.Scan)*float64(m.opts.Span)), fromScan)
	}
	return from
}

// begin starts a train: geometric length, at most the rest.
func (m *Lean) begin(id uint32, now int64) {
	f := &m.flows[id]
	length := 1 + uint32(math.Log1p(-m.rng.Float64())/math.Log1p(-1/float64(f.mean)))
	f.train, f.began, f.head = min(length, f.left), now, true
	m.trains.Push(event{time: now, id: id})
}

// advance sends the next packet of a train; false if it was lost, or the train is over.
func (m *Lean) advance(p *packet.Packet, e event) bool {
	f := &m.flows[e.id]
	if back := m.again[e.id]; len(back) > 0 && f.head {
		return m.repeat(p, e, back)
	}
	if f.wait == 1 || f.wait > 0 && f.train == 0 {
		f.wait = 0
		if f.passed {
			m.tallies[e.id].Count[LeanLate]++
		}
		m.segment(p, e, f.held.number, f.held.id)
		m.expectAck(p, e.id)
		m.after(e)
		return true
	}
	if f.train == 0 {
		m.rest(e)
		return false
	}
	return m.fresh(p, e)
}

// repeat sends all segments that wait for it in a row, before anything new.
func (m *Lean) repeat(p *packet.Packet, e event, back []leanSegment) bool {
	m.segment(p, e, back[0].number, m.nextID(e.id))
	if back[0].id == leanLost {
		m.expectAck(p, e.id)
	}
	m.tallies[e.id].Count[LeanAgain]++
	if m.again[e.id] = back[1:]; len(back) == 1 {
		delete(m.again, e.id)
	}
	m.trains.Push(m.later(e))
	return true
}

// leanLost marks a segment that was not seen before, leanSeen one that was.
const leanLost, leanSeen = 1, 0

// fresh sends the next new segment and decides its fate.
func (m *Lean) fresh(p *packet.Packet, e event) bool {
	f, t := &m.flows[e.id], &m.tallies[e.id]
	s := leanSegment{f.number, m.nextID(e.id)}
	f.number++
	f.left--
	f.train--
	f.head = false
	t.Sent++
	u := m.rng.Float32()
	if u < f.rates[LeanLoss] {
		t.Count[LeanLoss]++
		if m.opts.Repair {
			m.again[e.id] = append(m.again[e.id], leanSegment{s.number, leanLost})
		}
		m.trains.Push(e) // the next one is sent at this time instead
		return false
	}
	if u -= f.rates[LeanLoss]; u < f.rates[LeanLate] && f.wait == 0 && f.train > 0 {
		f.held, f.wait, f.passed = s, 2+uint8(m.rng.IntN(int(min(3, f.train)))), false
		m.trains.Push(e)
		return false
	}
	m.segment(p, e, s.number, s.id)
	m.expectAck(p, e.id)
	if f.wait > 1 {
		f.wait--
		f.passed = true
	}
	if u -= f.rates[LeanLate]; u >= 0 && u < f.rates[LeanAgain] {
		m.again[e.id] = append(m.again[e.id], leanSegment{s.number, leanSeen})
	}
	m.after(e)
	return true
}

func (m *Lean) later(e event) event {
	e.time += 1 + int64(m.rng.ExpFloat64()*float64(m.opts.Gap))
	return e
}

// after plans what follows a segment: another one, or the end of the train at once.
func (m *Lean) after(e event) {
	if f := &m.flows[e.id]; f.train > 0 || f.wait > 0 {
		m.trains.Push(m.later(e))
		return
	}
	m.rest(e)
}

// rest plans the next train, and keeps a pause before segments that are sent again.
func (m *Lean) rest(e event) {
	f := &m.flows[e.id]
	again := len(m.again[e.id]) > 0
	if f.left == 0 && !again {
		return
	}
	next := f.began + int64(float64(f.period)*(0.5+m.rng.Float64()))
	next = min(next, Start+int64(m.opts.Span)) // what does not fit in the time is sent at its end
	if again {
		next = max(next, e.time+leanPause)
	}
	m.idle.Push(event{time: max(next, m.later(e).time), id: e.id})
}

func (m *Lean) nextID(id uint32) uint16 {
	f := &m.flows[id]
	return f.ids.next(&f.id, m)
}

func (k idKind) next(counter *uint16, m *Lean) uint16 {
	switch k {
	case idZero:
		return 0
	case idRandom:
		return uint16(m.rng.Uint32())
	}
	*counter++
	return *counter
}

func (m *Lean) segment(p *packet.Packet, e event, number uint32, id uint16) {
	*p = packet.Packet{Time: e.time}
	m.address(p, e.id)
	p.Seq, p.Ack, p.IPID = mix(e.id)+number*mss, 1, id
	segment(p, packet.ACK, mss)
}

// expectAck plans the acknowledgement of a segment, unless there will be none.
func (m *Lean) expectAck(p *packet.Packet, id uint32) {
	if m.rng.Float64() < m.opts.Unanswered {
		return
	}
	f, t := &m.flows[id], &m.tallies[id]
	delay := int64(float64(f.rtt)*(0.97+0.06*m.rng.Float64())) + int64(f.rates[LeanDelay]*1e6)
	t.Acked++
	t.Delay += delay
	if f.rates[LeanDelay] > 0 {
		t.Count[LeanDelay]++
	}
	m.acks.Push(event{time: p.Time + delay, id: id, aux: p.Seq + p.Payload})
}

func (m *Lean) ack(p *packet.Packet, e event) {
	f := &m.flows[e.id]
	*p = packet.Packet{Time: e.time}
	m.address(p, e.id)
	reverse(p)
	p.Seq, p.Ack, p.IPID = 1, e.aux, f.ids.next(&f.ackID, m)
	segment(p, packet.ACK, 0)
}
