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

// accused is a flow that was, or may have been, a culprit of a burst.
type accused struct {
	key         heavy.Key
	share       share // of all that left while the burst lasted, as far as reports go
	size        uint64
	delay       int64 // of the packet whose report bears out most
	first, last int64 // ns
	tally
	before tally // of which in windows that ended before the burst

	one    share // of the report that bears out most
	part   portion
	window int64 // snapshot of the last report that was counted
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
	open        bool  // it has not ended
	flows       []accused
	more        uint64 // reports of flows beyond mostAccused

	from   int64 // arrival of the first packet that waited tau
	all    portion
	packet float64 // the largest of late
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
	links    map[uint32]*link
	early    map[uint32][]event // of packets that waited less than tau: they are of a burst if somebody waits tau after them
	ramps    []ramp
	line     [lineSlots]int64 // longest delay by time
	lineAt   int64            // begin of the first slot
	lineStep int64
	unlisted uint64
}

func newHistory() *history {
	return &history{open: map[uint32]*burst{}, over: map[uint32]int64{}, links: map[uint32]*link{}, early: map[uint32][]event{}, lineStep: 1 << 10}
}

// at is the burst of a queue that a packet belongs to: its first report need not be its beginning.
func (h *history) at(queue uint32, time, delay int64) *burst {
	b := h.open[queue]
	if b == nil {
		b = &burst{queue: queue, begin: time, from: time - delay, open: true}
		h.open[queue] = b
	}
	b.last = max(b.last, time)
	return b
}

// wait notes how long a packet waited.
func (h *history) wait(queue uint32, time, delay int64) *burst {
	b := h.at(queue, time, delay)
	b.peak = max(b.peak, delay)
	h.mark(time, delay)
	return b
}

// end closes the burst of a queue.
func (h *history) end(queue uint32, last, peak int64) {
	b := h.at(queue, last, 0)
	b.peak, b.open = max(b.peak, peak), false
	b.settle(h.link(queue))
	h.mark(last, peak)
	delete(h.open, queue)
	if !h.again(b) {
		h.keep(*b)
	}
}

// again adds a burst to the one before it in its queue that began at the same time: one core left it open, another one ended it.
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

// link of a queue.
func (h *history) link(queue uint32) *link {
	l := h.links[queue]
	if l == nil {
		l = &link{}
		h.links[queue] = l
	}
	return l
}

// mostEarly is how many reports of a queue wait for somebody to wait tau.
const mostEarly = 256

// wait keeps a report of a packet that waited less than tau: its flow may fill the queue that others wait in.
func (h *history) postpone(queue uint32, e *event) {
	early := h.early[queue]
	if len(early) == mostEarly {
		early = slices.Delete(early, 0, mostEarly/2)
	}
	h.early[queue] = append(early, *e)
}

// catch gives the burst of a queue what was reported since it began, until a time.
func (h *history) catch(c *config, b *burst, until int64) {
	early := h.early[b.queue]
	n := 0
	for ; n < len(early) && int64(early[n].Time) <= until; n++ {
		if int64(early[n].Time) > b.from {
			b.record(c, h.link(b.queue), &early[n])
		}
	}
	h.early[b.queue] = slices.Delete(early, 0, n)
}

// record takes a report of a flow.
func (b *burst) record(c *config, l *link, e *event) {
	time := int64(e.Time)
	one := accused{key: c.spec.Clean(e.Key), one: c.evidenceOf(l, e).share(), size: e.Size, delay: int64(e.Delay), first: time, last: time, window: -1}
	b.packet = max(b.packet, c.packetOf(e))
	b.all.ofAll(c, l, e, b.from)
	a := b.add(one)
	if a == nil {
		return
	}
	a.part.ofFlow(c, l, e, b.from)
	if window := time / c.interval(); e.Culprit != 0 && window != a.window {
		a.tally, a.window = a.tally.plus(tally{1, c.leftOf(e)}), window
	}
}

// accuse adds a flow of which all is known.
func (b *burst) accuse(key heavy.Key, s share, size uint64, left float64, time, delay int64) {
	if a := b.add(accused{key: key, one: s, size: size, delay: delay, first: time, last: time}); a != nil {
		a.share, a.tally = s, a.tally.plus(tally{1, left})
	}
}

// add puts a flow's reports together with what is there of it; nil: there are too many flows.
func (b *burst) add(one accused) *accused {
	n := slices.IndexFunc(b.flows, func(a accused) bool { return a.key == one.key })
	if n < 0 {
		if len(b.flows) == mostAccused {
			b.more += max(1, one.times)
			return nil
		}
		b.flows = append(b.flows, one)
		return &b.flows[len(b.flows)-1]
	}
	a := &b.flows[n]
	a.tally, a.before = a.tally.plus(one.tally), a.before.plus(one.before)
	a.last = max(a.last, one.last)
	a.judge(one)
	return a
}

// judge keeps the report that bears out the largest share, and the burst's share.
func (a *accused) judge(one accused) {
	if one.one.above(a.one) || one.one == (share{}) && one.share.above(a.share) {
		a.one, a.size, a.delay = one.one, one.size, one.delay
	}
	if one.share.above(a.share) {
		a.share = one.share
	}
}

func (s share) above(o share) bool {
	return cmp.Or(cmp.Compare(s.low, o.low), cmp.Compare(s.value, o.value)) > 0
}

// settle calculates the shares of a burst as they are now.
func (b *burst) settle(l *link) {
	for i := range b.flows {
		if a := &b.flows[i]; a.part.reported {
			a.share = b.shareOf(l, &a.part, a.one.value, b.packet)
		}
	}
}

// settled is a burst without what only its continuation needs.
func (b burst) settled() burst {
	b.flows = slices.Clone(b.flows)
	for i := range b.flows {
		a := &b.flows[i]
		a.one, a.part, a.window = share{}, portion{}, 0
	}
	b.from, b.all, b.packet = 0, portion{}, 0
	return b
}

// known reports whether the flow certainly had alpha of what left.
func (s share) known(alpha float64) bool { return s.low >= alpha }

// headline is the flow of which most left for certain, of those that had alpha of what left; false: of no flow that is known.
func (b *burst) headline(alpha float64) (accused, bool) {
	var most accused
	found := false
	for _, a := range b.flows {
		if a.share.known(alpha) && (!found || a.share.above(most.share)) {
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

// record takes a report of the data plane.
func (h *history) record(c *config, e *event) {
	time, delay, queue := int64(e.Time), int64(e.Delay), uint32(e.Queue)
	switch e.Kind {
	case eventCulprit:
		l := h.link(queue)
		l.learn(c, e)
		if c.source == sourceModel && c.bytes {
			l.now = c.rate / 8e9 // nothing is to be learned
		}
		defer l.wrote(c, e)
		if delay < c.tau {
			h.postpone(queue, e)
			return
		}
		b := h.wait(queue, time, delay)
		h.catch(c, b, time)
		b.record(c, l, e)
	case eventBegin, eventWindow:
		h.catch(c, h.wait(queue, time, delay), time)
	case eventEnd:
		begin, last := since(time, uint32(e.Burst>>32)), since(time, uint32(e.Burst))
		if at, known := h.over[queue]; known && last <= at+burstTick && h.open[queue] == nil {
			delete(h.over, queue)
			return
		}
		b := h.at(queue, last, 0)
		if begin < b.begin-burstTick { // the report of its beginning was lost
			b.begin, b.from = begin, min(begin, b.from)
		}
		h.catch(c, b, b.last)
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

// Shares returns what makes of a data plane's report the share of its flow, and the ends between which it is. It learns the link's rate from all that it is asked about.
func Shares(v algo.Values, replay bool) (func(e *bpf.ConquestConquestEvent) (value, low, high float64), error) {
	c, err := newConfig(v, algo.Setup{Replay: replay})
	if err != nil {
		return nil, err
	}
	l := &link{}
	return func(e *bpf.ConquestConquestEvent) (value, low, high float64) {
		l.learn(c, e)
		s := c.evidenceOf(l, e).share()
		return s.value, s.low, s.high
	}, nil
}

// collisions: a row adds less than e times the mean with probability 1 - 1/e, all rows with 1 - e^-rows (section 5.3.5).
const collisions = math.E

// take hands over what there is and starts the next report with the open bursts, and all that is known of them.
func (h *history) take() *history {
	taken := *h
	taken.bursts = slices.Clone(h.bursts)
	for _, b := range h.open {
		b.settle(h.link(b.queue))
		taken.bursts = append(taken.bursts, *b)
	}
	for i := range taken.bursts {
		taken.bursts[i] = taken.bursts[i].settled()
	}
	slices.SortFunc(taken.bursts, func(a, b burst) int { return int(a.begin-b.begin)*2 + int(a.queue) - int(b.queue) })
	next := newHistory()
	next.over, next.links, next.early = h.over, h.links, h.early
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
