package conquest

import (
	"math"
	"slices"
	"sort"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Passage is a packet's way through the queue.
type Passage struct {
	Arrival, Departure int64 // ns
	Dropped            bool
	Unmatched          bool // it left, and its arrival is not known
}

// Delay of the packet.
func (p Passage) Delay() int64 { return p.Departure - p.Arrival }

// Model is the queue that does not exist: first in, first out, of a rate and a size, in the arithmetic of the data plane.
type Model struct {
	free, room int64
	nsPerByte  uint64 // in 2^-byteBits
}

// NewModel makes an empty queue of so many bytes before a link of so many bits a second.
func NewModel(rate float64, bytes int64) *Model {
	return &Model{room: room(rate, bytes), nsPerByte: uint64(nsPerByte(rate))}
}

// room is how long a full queue takes to drain, ns.
func room(rate float64, bytes int64) int64 { return int64(float64(bytes) * 8e9 / rate) }

// nsPerByte of a link, in 2^-byteBits.
func nsPerByte(rate float64) uint32 {
	return uint32(min(math.Round(8e9/rate*(1<<byteBits)), math.MaxUint32))
}

// Pass takes the next packet.
func (m *Model) Pass(now int64, length uint32) Passage {
	begin, took := max(m.free, now), int64(uint64(length)*m.nsPerByte>>byteBits)
	if begin-now+took > m.room {
		return Passage{Arrival: now, Dropped: true}
	}
	m.free = begin + took
	return Passage{Arrival: now, Departure: begin}
}

// departed counts what has left, so that what left between two times is a difference.
type departed struct {
	times []int64
	sums  []uint64 // up to and with that departure
}

func (d *departed) add(time int64, n uint64) {
	var before uint64
	if len(d.sums) > 0 {
		before = d.sums[len(d.sums)-1]
	}
	d.times, d.sums = append(d.times, time), append(d.sums, before+n)
}

// before is what had left before a time.
func (d *departed) before(time int64) uint64 {
	n := sort.Search(len(d.times), func(i int) bool { return d.times[i] >= time })
	if n == 0 {
		return 0
	}
	return d.sums[n-1]
}

// between is what left in [from, to).
func (d *departed) between(from, to int64) uint64 { return d.before(to) - d.before(from) }

// forget drops what nobody asks for any more, when it is most of what is stored.
func (d *departed) forget(before int64) {
	n := sort.Search(len(d.times), func(i int) bool { return d.times[i] >= before })
	if n > 1024 && n > len(d.times)/2 {
		d.times, d.sums = slices.Clone(d.times[n-1:]), slices.Clone(d.sums[n-1:])
	}
}

// Contents are the exact contents of a queue: who left while a packet waited.
type Contents struct {
	all   departed
	flows map[heavy.Key]*departed
}

// NewContents are those of an empty queue.
func NewContents() *Contents { return &Contents{flows: map[heavy.Key]*departed{}} }

// Depart adds a departure of n bytes or packets; departures are in order.
func (q *Contents) Depart(key heavy.Key, time int64, n uint64) {
	f := q.flows[key]
	if f == nil {
		f = &departed{}
		q.flows[key] = f
	}
	f.add(time, n)
	q.all.add(time, n)
}

// Share is what of the flow and of all flows left in [from, to).
func (q *Contents) Share(key heavy.Key, from, to int64) (size, total uint64) {
	if f := q.flows[key]; f != nil {
		size = f.between(from, to)
	}
	return size, q.all.between(from, to)
}

// Forget drops departures before a time.
func (q *Contents) Forget(before int64) {
	q.all.forget(before)
	for key, f := range q.flows {
		f.forget(before)
		if f.times[len(f.times)-1] < before {
			delete(q.flows, key)
		}
	}
}

// Oracle implements algo.OracleProvider.
func (i *instance) Oracle() algo.Oracle {
	o := &oracle{config: i.config, contents: NewContents(), history: newHistory(), reported: map[heavy.Key]int64{}}
	switch i.source {
	case sourceModel:
		m := NewModel(i.rate, i.buffer)
		o.passage = func(p *packet.Packet) (Passage, bool) { return m.Pass(p.Time, p.Len), true }
	case sourceTap:
		t := &tapped{config: i.config, waiting: map[sighting]int64{}}
		o.passage = t.passage
	default:
		o.passage = func(p *packet.Packet) (Passage, bool) {
			return Passage{Arrival: p.Enqueued, Departure: p.Time, Unmatched: p.Enqueued == 0}, true
		}
	}
	return o
}

// sighting is what a packet is known by on both sides of a device.
type sighting struct {
	key      heavy.Key
	seq, ack uint32
	ipid     uint16
	data     bool
	begin    uint64
}

// tapped matches packets exactly.
type tapped struct {
	*config
	waiting map[sighting]int64
}

var fiveTuple = heavy.Spec{Fields: heavy.Src | heavy.Dst | heavy.SrcPort | heavy.DstPort | heavy.Proto}

func (t *tapped) passage(p *packet.Packet) (Passage, bool) {
	key, _ := fiveTuple.Of(p)
	s := sighting{key: key, data: p.Payload > 0}
	switch {
	case p.Has(packet.TCP):
		s.seq, s.ack = p.Seq, p.Ack
	case p.Has(packet.ICMP):
		s.seq = p.Seq
	case p.Has(packet.UDP):
		s.begin = p.Begin
	}
	if p.Has(packet.IPID) {
		s.ipid = p.IPID
	}
	arrived, known := t.waiting[s]
	if t.egress != 0 && p.Interface != t.egress || t.egress == 0 && !p.Has(packet.IsEgress) {
		if !known || p.Time-arrived > t.expire {
			t.waiting[s] = p.Time
		}
		return Passage{}, false
	}
	delete(t.waiting, s)
	return Passage{Arrival: arrived, Departure: p.Time, Unmatched: !known}, true
}

// oracle knows what every packet waited for.
type oracle struct {
	*config
	passage  func(*packet.Packet) (Passage, bool)
	contents *Contents
	history  *history
	reported map[heavy.Key]int64 // snapshot of the last report
	until    int64               // the longest delay of late is forgotten then

	departures, congested, guilty, dropped, known uint64
	waited                                        int64
	queue                                         uint32
	hot                                           bool
	last, peak                                    int64
}

// key of a packet, as the data plane makes it.
func (c *config) keyOf(p *packet.Packet) (heavy.Key, bool) {
	key, ok := c.spec.Of(p)
	if c.classes {
		key[0] |= uint64(p.TOS>>2) << 8
	}
	return key, ok
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) {
	w, leaves := o.passage(p)
	if !leaves {
		return
	}
	if w.Dropped {
		o.dropped++
		return
	}
	key, ok := o.keyOf(p)
	if !ok {
		return
	}
	o.departures++
	n := uint64(p.Segs)
	if o.bytes {
		n = uint64(p.Len)
	}
	if !w.Unmatched {
		o.known++
		o.waited += w.Delay()
		o.leave(key, w)
	}
	o.contents.Depart(key, w.Departure, n)
	if o.departures%(1<<16) == 0 {
		o.contents.Forget(w.Departure - int64(2e9))
	}
}

// leave asks for one that is about to leave.
func (o *oracle) leave(key heavy.Key, w Passage) {
	delay := w.Delay()
	if o.widest {
		o.until = max(o.until, w.Departure+2*delay)
		delay = (o.until - w.Departure) / 2
	}
	if delay < o.tau {
		if o.hot && delay < o.tau/2 && w.Departure/burstTick-o.last/burstTick >= o.pause() {
			o.history.end(o.queue, o.last, o.peak)
			o.hot, o.peak = false, 0
		}
		return
	}
	o.congested++
	o.hot, o.last, o.peak = true, w.Departure, max(o.peak, delay)
	b := o.history.wait(o.queue, w.Departure, delay)
	looked := delay
	if o.config.history > 0 {
		looked = min(looked, o.config.history)
	}
	size, total := o.contents.Share(key, w.Departure-looked, w.Departure)
	if float64(size) <= o.alphaShare()*float64(total) {
		return
	}
	o.guilty++
	if epoch := w.Departure >> o.shift; o.reported[key] != epoch {
		o.reported[key] = epoch
		ofBurst, all := o.contents.Share(key, b.from, w.Departure)
		exact := float64(ofBurst) / float64(max(1, all))
		left := float64(size) * min(1, float64(o.interval())/float64(max(1, looked)))
		b.accuse(key, share{exact, exact, exact}, size, left, w.Departure, delay)
	}
}

// Window implements algo.Oracle.
func (o *oracle) Window(w report.Window) report.Body {
	n := make(counts, counters)
	n[bpf.ConquestConquestCounterCONQUEST_CONGESTED], n[bpf.ConquestConquestCounterCONQUEST_CULPRIT] = o.congested, o.guilty
	n[bpf.ConquestConquestCounterCONQUEST_DELAY] = uint64(o.waited)
	n[fateLeft], n[fateUnmatched], n[fateDropped] = o.known, o.departures-o.known, o.dropped
	h := o.history.take()
	b := o.answer(n, h, 0)
	o.departures, o.congested, o.guilty, o.dropped, o.known, o.waited = 0, 0, 0, 0, 0, 0
	return b
}
