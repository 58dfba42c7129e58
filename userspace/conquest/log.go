package conquest

import (
	"cmp"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

type event = bpf.ConquestConquestEvent

const (
	eventCulprit = uint32(bpf.ConquestConquestEventKindEVENT_CULPRIT)
	eventBegin   = uint32(bpf.ConquestConquestEventKindEVENT_BEGIN)
	eventWindow  = uint32(bpf.ConquestConquestEventKindEVENT_WINDOW)
	eventEnd     = uint32(bpf.ConquestConquestEventKindEVENT_END)
	eventRamp    = uint32(bpf.ConquestConquestEventKindEVENT_RAMP)
)

// burstTick is the unit of the data plane's burst words.
const burstTick = 1024 // ns

// What a report's window keeps.
const (
	mostBursts  = 1000
	mostAccused = 64 // flows of one burst
	mostRamps   = 1000
	lineSlots   = 60 // of the time line
)

// share is what a flow had of the queue: size of total, and the ends of where it can have been.
type share struct{ value, low, high float64 }

// accused is a flow that was a culprit of a burst.
type accused struct {
	key         heavy.Key
	share       share // of the report with the best lower bound
	size        uint64
	delay       int64 // of the packet of that report
	first, last int64 // ns
	tally
	before tally // of which in windows that ended while the burst went on
}

// tally is what reports of a flow add up to.
type tally struct {
	times uint64
	left  float64 // of the flow that left the queue in the snapshots of these reports, about
}

func (t tally) plus(o tally) tally { return tally{t.times + o.times, t.left + o.left} }

func (t tally) less(o tally) tally {
	return tally{t.times - min(o.times, t.times), max(0, t.left-o.left)}
}

// burst of a queue.
type burst struct {
	queue       uint32
	begin, last int64 // departures of the first and the last packet that waited tau
	peak        int64 // ns
	open        bool  // it goes on
	flows       []accused
	more        uint64 // reports of flows beyond mostAccused
}

// ramp is a flow that grew quickly.
type ramp struct {
	time         int64
	key          heavy.Key
	size, before uint64
}

// history puts together what the data plane has reported since the last report. The exact oracle writes one too.
type history struct {
	bursts   []burst
	open     map[uint32]*burst // by queue
	over     map[uint32]int64  // last packets of bursts whose end nobody has reported yet
	ramps    []ramp
	line     [lineSlots]int64 // longest delay by time
	lineAt   int64            // begin of the first slot
	lineStep int64
	unlisted uint64
}

func newHistory() *history {
	return &history{open: map[uint32]*burst{}, over: map[uint32]int64{}, lineStep: 1 << 10}
}

// at is the burst of a queue that a time belongs to: its first report need not be its beginning.
func (h *history) at(queue uint32, time int64) *burst {
	b := h.open[queue]
	if b == nil {
		b = &burst{queue: queue, begin: time, open: true}
		h.open[queue] = b
	}
	b.last = max(b.last, time)
	return b
}

// wait notes how long a packet waited.
func (h *history) wait(queue uint32, time, delay int64) *burst {
	b := h.at(queue, time)
	b.peak = max(b.peak, delay)
	h.mark(time, delay)
	return b
}

// end closes the burst of a queue.
func (h *history) end(queue uint32, last, peak int64) {
	b := h.at(queue, last)
	b.peak, b.open = max(b.peak, peak), false
	h.mark(last, peak)
	delete(h.open, queue)
	if !h.again(b) {
		h.keep(*b)
	}
}

// again adds a burst to the one before it in its queue that began at the same time: a core that let it go on met another one that ended it.
func (h *history) again(b *burst) bool {
	n := len(h.bursts) - 1
	for n >= 0 && h.bursts[n].queue != b.queue {
		n--
	}
	if n < 0 || b.begin > h.bursts[n].begin+burstTick {
		return false
	}
	before := &h.bursts[n]
	before.last, before.peak, before.more = max(before.last, b.last), max(before.peak, b.peak), before.more+b.more
	for _, a := range b.flows {
		before.add(a)
	}
	return true
}

// idle ends bursts of which nothing was reported for twice their longest delay, and for twice the longest that is expected: their queues are empty, and the
// packet that would report it has not arrived. In a standing queue departures may lie as far apart as packets wait.
func (h *history) idle(now, longest int64) {
	for queue, b := range h.open {
		if b.last < now-2*max(longest, b.peak) {
			h.over[queue] = b.last
			h.end(queue, b.last, b.peak)
		}
	}
}

func (h *history) keep(b burst) {
	if len(h.bursts) == mostBursts {
		h.bursts = slices.Delete(h.bursts, 0, 1)
		h.unlisted++
	}
	h.bursts = append(h.bursts, b)
}

// accuse adds a flow to its burst.
func (b *burst) accuse(key heavy.Key, s share, size uint64, left float64, time, delay int64) {
	b.add(accused{key: key, share: s, size: size, delay: delay, tally: tally{1, left}, first: time, last: time})
}

func (b *burst) add(one accused) {
	n := slices.IndexFunc(b.flows, func(a accused) bool { return a.key == one.key })
	if n < 0 {
		if len(b.flows) == mostAccused {
			b.more += one.times
			return
		}
		b.flows = append(b.flows, one)
		return
	}
	a := &b.flows[n]
	a.tally, a.before = a.tally.plus(one.tally), a.before.plus(one.before)
	a.last = max(a.last, one.last)
	a.judge(one)
}

// judge keeps the report that bears out the largest share.
func (a *accused) judge(one accused) {
	if cmp.Or(cmp.Compare(one.share.low, a.share.low), cmp.Compare(one.share.value, a.share.value)) > 0 {
		a.share, a.size, a.delay = one.share, one.size, one.delay
	}
}

// known says whether the flow certainly had alpha of the queue, and more than another one can have had of what nobody saw leave.
func (s share) known(alpha float64) bool { return s.low >= alpha && s.high-s.low <= s.low }

// headline is the flow of which most left, of those whose share is known; false: of no flow it is.
func (b *burst) headline(alpha float64) (accused, bool) {
	var most accused
	found := false
	for _, a := range b.flows {
		if a.share.known(alpha) && (!found || cmp.Or(cmp.Compare(a.left, most.left), cmp.Compare(a.share.low, most.share.low)) > 0) {
			most, found = a, true
		}
	}
	return most, found
}

// mark writes into the time line, whose slots double when the time outgrows them.
func (h *history) mark(time, delay int64) {
	if h.lineAt == 0 {
		h.lineAt = time
	}
	for time-h.lineAt >= lineSlots*h.lineStep {
		fine := h.line
		clear(h.line[:])
		for i, d := range fine {
			h.line[i/2] = max(h.line[i/2], d)
		}
		h.lineStep *= 2
	}
	if slot := (time - h.lineAt) / h.lineStep; slot >= 0 {
		h.line[slot] = max(h.line[slot], delay)
	}
}

// hear takes a report of the data plane.
func (h *history) hear(c *config, e *event) {
	time, delay, queue := int64(e.Time), int64(e.Delay), uint32(e.Queue)
	switch e.Kind {
	case eventCulprit:
		h.wait(queue, time, delay).accuse(c.spec.Clean(e.Key), c.shareOf(e), e.Size, c.leftOf(e), time, delay)
	case eventBegin, eventWindow:
		h.wait(queue, time, delay)
	case eventEnd:
		begin, last := since(time, uint32(e.Burst>>32)), since(time, uint32(e.Burst))
		if at, known := h.over[queue]; known && last <= at+burstTick && h.open[queue] == nil {
			delete(h.over, queue)
			return
		}
		b := h.at(queue, last)
		if begin < b.begin-burstTick { // the report of its beginning was lost
			b.begin = begin
		}
		h.end(queue, last, int64(e.Size))
	case eventRamp:
		if len(h.ramps) == mostRamps {
			h.unlisted++
			return
		}
		h.ramps = append(h.ramps, ramp{time, c.spec.Clean(e.Key), e.Size, e.Total})
	}
}

// since is the time of a 32-bit number of ticks before now.
func since(now int64, ticks uint32) int64 {
	return now - int64(uint32(now/burstTick)-ticks)*burstTick - now%burstTick
}

// shareOf is what a report says of its flow. Of the oldest snapshot that was read a part counts, of which the flow may have had all or
// nothing; what collides adds to it; a packet, or an aggregate, is in one snapshot wholly; and of what had left before the oldest snapshot nobody knows. From below there
// are two bounds, of which the better one holds: the flow had what the other snapshots say, and others had no more than all of theirs in the oldest one.
func (c *config) shareOf(e *event) share {
	size, total := float64(e.Size), float64(e.Total)
	if total == 0 {
		return share{}
	}
	edge, oldest, queue := float64(e.Edge)/(1<<16), float64(e.Oldest), total
	unsure, rest := oldest*edge, oldest*(1-edge)
	interval, columns := c.windowOf(e)
	inWindow := e.Time & uint64(interval-1)
	if e.Reach == 0 { // the packet came while the snapshot was being written, which has no word of what had left before
		edge = min(1, float64(e.Delay)/float64(max(1, inWindow)))
		unsure, rest, queue = size, total-size, total*edge // its link was busy since then
	} else if e.Edge == 1<<16 {
		unsure = 0
	}
	collided, packet := collisions/float64(columns)*total, max(c.packet(), float64(e.Largest))
	others := max(0, total-size+collided)
	if e.Reach > 0 {
		others /= max(edge, 1.0/(1<<16)) // if all of theirs in the oldest snapshot left since
	}
	unseen := total * max(0, float64(e.Delay)/float64(max(1, inWindow+uint64(e.Reach)*uint64(interval)))-1)
	queue = max(queue+unseen, 1)
	low := max((size-unsure-collided)/(total+unseen), 1-(others+unseen)/queue) - packet/queue
	high := (size + rest + unseen + packet) / (total + unseen)
	if e.Reach == 0 { // no more than all that the window has of it
		high = min(high, (size+packet)/queue)
	}
	return share{min(1, size/total), min(1, max(0, low)), min(1, high)}
}

// windowOf is the length of the windows that a report is of, ns, and how many columns a row of them has.
func (c *config) windowOf(e *event) (interval int64, columns int) {
	if e.Wide != 0 {
		return c.interval() << c.coarse, c.coarseColumns()
	}
	return c.interval(), c.columns
}

// leftOf is about how much of the flow left in the snapshot of a report: its part of the time that the report covers.
func (c *config) leftOf(e *event) float64 {
	interval, _ := c.windowOf(e)
	covered := e.Time & uint64(interval-1)
	if e.Reach > 0 {
		covered = min(e.Delay, covered+uint64(e.Reach)*uint64(interval))
	}
	covered = max(1, covered)
	return float64(e.Size) * min(1, float64(c.interval())/float64(covered))
}

// packet is the size of a full one.
func (c *config) packet() float64 {
	if c.bytes {
		return fullPacket
	}
	return 1
}

// Shares returns what makes of a data plane's report the share of its flow, and the ends between which it is.
func Shares(v algo.Values, replay bool) (func(e *bpf.ConquestConquestEvent) (value, low, high float64), error) {
	c, err := newConfig(v, algo.Setup{Replay: replay})
	if err != nil {
		return nil, err
	}
	return func(e *bpf.ConquestConquestEvent) (value, low, high float64) {
		s := c.shareOf(e)
		return s.value, s.low, s.high
	}, nil
}

// collisions: a row adds less than e times the mean with probability 1 - 1/e, all rows with 1 - e^-rows (section 5.3.5).
const collisions = math.E

// take hands over what there is and starts the next report with the bursts that go on, and all that is known of them.
func (h *history) take() *history {
	taken := *h
	taken.bursts = slices.Clone(h.bursts)
	for _, b := range h.open {
		one := *b
		one.flows = slices.Clone(b.flows)
		taken.bursts = append(taken.bursts, one)
	}
	slices.SortFunc(taken.bursts, func(a, b burst) int { return int(a.begin-b.begin)*2 + int(a.queue) - int(b.queue) })
	next := newHistory()
	next.over = h.over
	for queue, b := range h.open {
		on := *b
		on.flows = slices.Clone(b.flows)
		for i := range on.flows {
			on.flows[i].before = on.flows[i].tally
		}
		next.open[queue] = &on
	}
	*h = *next
	return &taken
}
