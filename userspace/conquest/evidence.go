package conquest

import (
	"cmp"
	"math"
	"slices"
)

// What reports prove. A report has sums over whole snapshots, which are exact but for collisions, and of the oldest one a part that counts by its overlap with the
// packet's wait. What left in that part is bounded by what the snapshot holds and by what the link can send in the time; between two reports of a
// flow nothing is uncertain: both sums are exact, and so is their difference. All sizes here are in units of the snapshots (bytes or packets), all times in ns.

// link is the most that a queue's link has been seen to send: a queue that may stand still, or a link that others use, gives no lower bound.
type link struct {
	now, before float64 // units a ns, of this span of rateSpan and of the one before that knew one
	rough       float64 // of fewer packets than leastSent, as long as nothing better is known: too high by one of them as well, which is much
	span        int64
	sum, time   float64 // what left lately while it was busy

	written [sideBySide]int64 // by the place of a snapshot, the last one that is known to be older than a report
}

// rateSpan is how long the largest rate is remembered, at least: a link that has become slower makes bounds wider until then.
const rateSpan = 1 << 33 // 8.6 s

// leastSent is how many packets a rate is measured over at least: it is too high by one of them.
const leastSent = 8

// most is the rate that nothing has exceeded; infinite where none is known.
func (l *link) most() float64 {
	if most := max(l.now, l.before); most > 0 {
		return most
	}
	if l.rough > 0 {
		return l.rough
	}
	return math.Inf(1)
}

// learn takes the rate of the whole snapshots of a report: its packet arrived before them, so the link was busy.
func (l *link) learn(c *config, e *event) {
	if e.Reach == 0 {
		return
	}
	interval, _ := c.windowOf(e)
	s, packet := c.sumsOf(e), c.packetOf(e)
	t := float64(e.Time&uint64(interval-1)) + float64(e.Reach-1)*float64(interval)
	if t < float64(interval)/2 || s.fullAll < packet {
		return
	}
	if s.fullAll < leastSent*packet {
		l.rough = max(l.rough, (s.fullAll+packet)/t)
		return
	}
	if span := int64(e.Time) / rateSpan; span != l.span {
		if l.now > 0 {
			l.before = l.now
		}
		l.span, l.now = span, 0
	}
	l.now = max(l.now, (s.fullAll+packet)/t)
}

// busy takes what left between two reports, of which the later packet arrived before the earlier one left.
func (l *link) busy(n, ns, packet float64) {
	l.sum, l.time = l.sum+n, l.time+ns
	if l.sum >= 2*leastSent*packet {
		l.now = max(l.now, (l.sum+packet)/l.time)
		l.sum, l.time = 0, 0
	}
}

// sent is the most that can leave in some time.
func (l *link) sent(ns, packet float64) float64 {
	if ns <= 0 {
		return packet
	}
	return l.most()*ns + packet
}

// packetOf is what leaves at once: a full packet, or the largest aggregate of late.
func (c *config) packetOf(e *event) float64 { return max(c.packet(), float64(e.Largest)) }

// evidence is what one report shows of what left while its packet waited: least and most of the flow and of others.
type evidence struct {
	size, total          float64 // estimates
	least, most          float64 // of the flow
	othersMin, othersMax float64
}

// rounding of the data plane: two integers.
const rounding = 2

// evidenceOf a report alone.
func (c *config) evidenceOf(l *link, e *event) evidence {
	s, packet := c.sumsOf(e), c.packetOf(e)
	interval, columns := c.windowOf(e)
	size, total, delay := float64(e.Size), float64(e.Total), float64(e.Delay)
	collided := collisions / float64(columns) * total
	inside, window := float64(e.Time&uint64(interval-1)), float64(interval)
	lacks := c.lacks(l, e)
	v := evidence{size: size, total: total}
	if e.Reach == 0 { // it arrived while the snapshot was being written
		before, during := l.sent(inside-delay, packet), l.sent(delay, packet)
		v.least, v.most = max(0, size-collided-before), min(size+lacks, during)
		v.othersMin, v.othersMax = max(0, total-size-lacks-before), min(max(0, total-size)+collided, during)
		return v
	}
	unseen := c.unseen(l, e)
	early := c.early(l, s, e)
	edge := float64(e.Edge) / (1 << 16)
	before, during := l.sent(window*(1-edge), packet), l.sent(window*edge, packet)
	if edge == 1 {
		before = 0 // all of it is meant
	}
	others := max(0, s.oldAll-s.old)
	leastOld, leastOthers := max(0, s.old-collided-before), max(0, others-before)
	v.least = max(0, s.full-collided) + leastOld
	v.most = s.full + max(0, min(s.old, during-leastOthers)) + lacks + unseen + rounding
	v.othersMin = max(0, s.fullAll-s.full-lacks-early-rounding) + leastOthers
	v.othersMax = max(0, s.fullAll-s.full) + max(0, min(others+collided, during-leastOld)) + collided + unseen + rounding
	return v
}

// lacks is the most that a report by coarse snapshots lacks of its flow: of the fine window in which its packet arrived nothing counts that is not in a coarse one yet.
func (c *config) lacks(l *link, e *event) float64 {
	if e.Wide == 0 {
		return 0
	}
	return l.sent(float64(c.interval()), c.packetOf(e))
}

// wrote notes that a packet has left in the window of a report: it has overwritten what the place held of an older one, which is in a coarse snapshot since.
func (l *link) wrote(c *config, e *event) {
	window := int64(e.Time) / c.interval()
	l.written[window%sideBySide] = window
}

// early is the most of all flows that counts as of coarse snapshots after the oldest one and is of that, since nobody has overwritten it yet: of places where nobody is known to have left
// since the oldest one ended. A link that is busy leaves none in four windows; one that sends little, or stands still, may.
func (c *config) early(l *link, s sums, e *event) (n float64) {
	if !s.wide || s.unread {
		return 0
	}
	begun, now := (s.oldest+1)<<c.coarse, int64(e.Time)/c.interval()
	for place, window := range l.written {
		if place < c.snapshots && (window < begun || window > now) { // later: the report is read late
			n += l.sent(float64(c.interval()), c.packetOf(e))
		}
	}
	return min(s.fullAll, n)
}

// unseen is the most that left while the packet waited and before the oldest snapshot.
func (c *config) unseen(l *link, e *event) float64 {
	interval, _ := c.windowOf(e)
	seen := int64(e.Time)&(interval-1) + int64(e.Reach)*interval
	if gap := int64(e.Delay) - seen; gap > 0 && e.Reach > 0 {
		return l.sent(float64(gap), c.packetOf(e))
	}
	return 0
}

// share of what left while the packet waited.
func (v evidence) share() share {
	if v.total == 0 {
		return share{}
	}
	return between(v.size/v.total, v.least, v.most, v.othersMin, v.othersMax)
}

// between makes a share of bounds.
func between(value, least, most, othersMin, othersMax float64) share {
	s := share{low: ratio(least, othersMax), high: ratio(most, othersMin)}
	s.value = max(s.low, min(s.high, value))
	return s
}

// ratio is a of a and b.
func ratio(a, b float64) float64 {
	switch {
	case math.IsInf(b, 1):
		return 0
	case math.IsInf(a, 1), a+b <= 0:
		return min(1, a)
	}
	return a / (a + b)
}

// sums of a report: of the flow and of all, in the snapshots after the oldest one that was read, and in that.
type sums struct {
	oldest                     int64 // its number
	full, fullAll, old, oldAll float64
	unread                     bool // the oldest one was not read
	wide                       bool
}

func (c *config) sumsOf(e *event) sums {
	interval, _ := c.windowOf(e)
	s := sums{oldest: int64(e.Time)/interval - int64(e.Reach), full: float64(e.Size), fullAll: float64(e.Total), wide: e.Wide != 0}
	if e.Reach == 0 {
		s.oldest, s.unread = s.oldest-1, true
		return s
	}
	edge := float64(e.Edge) / (1 << 16)
	s.old, s.oldAll = float64(e.Oldest), float64(e.OldestTotal)
	s.full, s.fullAll = max(0, s.full-s.old*edge), max(0, s.fullAll-s.oldAll*edge)
	return s
}

// begun is when the oldest snapshot began of which all is known.
func (s sums) begun(c *config, e *event) int64 {
	window, _ := c.windowOf(e)
	if s.unread {
		return (s.oldest + 1) * window
	}
	return s.oldest * window
}

// step is what left between two reports; where that is not known, all in the snapshots of the later one is no less than what left since these began.
type step struct {
	least, most float64
	known       bool

	seen  float64
	begun int64
}

func (s step) atMost(begin int64) float64 {
	if s.seen > 0 && begin >= s.begun {
		return s.seen
	}
	return math.Inf(1)
}

// exactly is a step without doubt; what is below 0 by more than rounding is none.
func exactly(n float64) step { return step{least: max(0, n), most: max(0, n), known: n >= -rounding} }

// since is what left between two reports by fine snapshots, of one flow or (all) of everybody: exact where both know the same ones.
func (s sums) since(o sums, all bool) step {
	if s.wide || o.wide {
		return step{}
	}
	mine, old, theirs, before := s.full, s.old, o.full, o.old
	if all {
		mine, old, theirs, before = s.fullAll, s.oldAll, o.fullAll, o.oldAll
	}
	switch s.oldest - o.oldest {
	case 0:
		return exactly(mine - theirs)
	case 1:
		if !s.unread {
			return exactly(mine + old - theirs)
		}
	case -1:
		if !o.unread {
			return exactly(mine - before - theirs)
		}
	}
	return step{}
}

// sinceWide is the same of everybody by coarse snapshots. A coarse snapshot and what of it is in fine cells yet are whole together; what of the oldest one counts as of later ones (early, of
// the report before) is missing once it is where it belongs. In a queue that is first in, first out, the oldest one only ever becomes a later one.
func (s sums) sinceWide(o sums, early float64) step {
	if !s.wide || !o.wide {
		return step{}
	}
	var n float64
	switch later := s.oldest - o.oldest; {
	case later == 0 && !s.unread && !o.unread:
		return exactly(s.fullAll + s.oldAll - o.fullAll - o.oldAll)
	case later == 0 && s.unread:
		n = s.fullAll - o.fullAll
	case later == 1 && !s.unread:
		n = s.fullAll + s.oldAll - o.fullAll
	default:
		return step{}
	}
	return step{least: max(0, n), most: max(0, n) + early, known: n+early >= -rounding}
}

// point is what certainly left of a burst up to a time.
type point struct {
	time  int64
	least float64
}

// mostPoints of a burst are remembered: where they are too many, every second one of the older half is dropped.
const mostPoints = 256

// portion is what is known of a burst, of one flow or of all, over the reports so far. At least: the best of what reports show that do not overlap, and of what left between two
// of them. At most: what the link can have sent where nothing better is known.
type portion struct {
	points   []point
	most     float64
	until    int64   // departure of the report that most is up to; what leaves at that time is in neither
	own      float64 // ... of its packet
	last     sums    // of that report
	reported bool

	early float64 // of all: evidence.go's early() of that report
	top   float64 // of a flow: the most that it had in the coarse snapshots of that report
	debt  float64 // what reports may count later on though it left before

	collided float64 // of all that left, what others may have added to a flow
}

// least of what left in all.
func (p *portion) least() float64 {
	if len(p.points) == 0 {
		return 0
	}
	return p.points[len(p.points)-1].least
}

// leastAt is what had certainly left by a time.
func (p *portion) leastAt(time int64) float64 {
	n, _ := slices.BinarySearchFunc(p.points, time+1, func(a point, t int64) int { return cmp.Compare(a.time, t) })
	if n == 0 {
		return 0
	}
	return p.points[n-1].least
}

// proven adds a point, if it shows more than those that are there.
func (p *portion) proven(time int64, least float64) {
	if n := len(p.points); n > 0 && (least <= p.points[n-1].least || time < p.points[n-1].time) {
		return
	}
	if len(p.points) == mostPoints {
		rest := p.points[:0]
		for i, one := range p.points {
			if i%2 == 0 || i > mostPoints/2 {
				rest = append(rest, one)
			}
		}
		p.points = rest
	}
	p.points = append(p.points, point{time, least})
}

// grow adds a report. since is what left since the last one, if that is known; least and most are what it shows by itself.
func (p *portion) grow(c *config, l *link, e *event, from int64, since step, least, most float64) {
	time, arrival, packet := int64(e.Time), int64(e.Time-e.Delay), c.packetOf(e)
	if arrival >= from {
		p.proven(time, p.leastAt(arrival)+least)
	}
	begin := from
	if p.reported {
		begin = p.until
	}
	if p.reported && since.known {
		p.proven(time, p.leastAt(p.until)+since.least)
	} else if p.reported && time <= begin {
		return
	}
	more := min(l.sent(float64(time-begin), packet), most+l.sent(float64(arrival-begin), packet), since.atMost(begin))
	if p.reported && since.known && (since.most == since.least || since.most < more) {
		more = since.most + rounding
	}
	if p.most += more; math.IsInf(p.most, 1) { // the rate was not known so far
		p.most = l.sent(float64(time-from), packet)
	}
	p.until, p.own, p.last, p.reported = time, float64(e.Burst), c.sumsOf(e), true
}

func (p *portion) ofFlow(c *config, l *link, e *event, from int64) {
	s, v := c.sumsOf(e), c.evidenceOf(l, e)
	since := s.since(p.last, false)
	if s.wide {
		since = step{least: p.wide(c, l, e, s), most: math.Inf(1), known: p.reported}
	}
	_, columns := c.windowOf(e)
	p.collided = max(p.collided, collisions/float64(columns))
	p.grow(c, l, e, from, since, v.least, v.most)
}

// wide is the least that left of a flow since the report before, by coarse snapshots. What was in a fine cell and left before the packet of a report arrived does not count there, and counts later,
// when it was added to a coarse one: nothing is proven by less than the most that was there already, nor by as much as may have been left out at first.
func (p *portion) wide(c *config, l *link, e *event, s sums) (n float64) {
	later := s.oldest - p.last.oldest
	switch {
	case p.reported && p.last.wide && !math.IsInf(p.debt, 1) && later == 0 && (s.unread || !p.last.unread):
		n = s.full - p.top
		p.top = max(p.top, s.full)
	case p.reported && p.last.wide && !math.IsInf(p.debt, 1) && later == 1 && !s.unread:
		n = s.full + s.old - p.top
		p.top = s.full
	default:
		p.top, p.debt = s.full, c.omitted(l, e, s)
		return 0
	}
	n = max(0, n)
	paid := min(n, p.debt)
	p.debt -= paid
	return n - paid
}

// omitted is the most of a flow that left in the coarse snapshot of a report, before its packet arrived, and does not count yet: in the total it does.
func (c *config) omitted(l *link, e *event, s sums) float64 {
	window, columns := c.windowOf(e)
	before := e.Time&uint64(window-1) - min(e.Delay, e.Time&uint64(window-1))
	if !s.unread || before == 0 {
		return 0
	}
	packet := c.packetOf(e)
	rest := max(0, s.fullAll-s.full) + collisions/float64(columns)*s.fullAll + rounding
	return min(l.sent(float64(before), packet), float64(c.snapshots)*l.sent(float64(c.interval()), packet), rest)
}

func (p *portion) ofAll(c *config, l *link, e *event, from int64) {
	s, v := c.sumsOf(e), c.evidenceOf(l, e)
	since := s.since(p.last, true)
	if s.wide {
		since = s.sinceWide(p.last, p.early)
	}
	since.seen, since.begun = s.fullAll+s.oldAll+rounding, s.begun(c, e)
	if p.reported && since.known && int64(e.Time-e.Delay) <= p.until {
		l.busy(since.least, float64(int64(e.Time)-p.until), c.packetOf(e))
	}
	p.grow(c, l, e, from, since, v.least+v.othersMin, s.fullAll+s.oldAll+c.unseen(l, e)) // the oldest snapshot began before the packet arrived
	p.early = c.early(l, s, e)
}

// mostUntil is what can have left by a later time, what leaves then included.
func (p *portion) mostUntil(l *link, time int64, packet float64) float64 {
	if time > p.until {
		return p.most + l.sent(float64(time-p.until), packet)
	}
	return p.most + p.own
}

// leastUntil is what has certainly left, what leaves then included.
func (p *portion) leastUntil(time int64) float64 {
	if time < p.until {
		return p.least()
	}
	return p.least() + p.own
}

// shareOf a flow of all that left in a burst. Others collide with it in every report.
func (b *burst) shareOf(l *link, p *portion, value, packet float64) share {
	all, most := b.all.mostUntil(l, b.last, packet), p.mostUntil(l, b.last, packet)
	s := share{high: 1}
	if all > 0 && !math.IsInf(all, 1) {
		s.low = max(0, min(1, p.leastUntil(b.last)/all-p.collided))
	}
	if least := b.all.leastUntil(b.last); most < least {
		s.high = max(s.low, most/least)
	}
	s.value = max(s.low, min(s.high, value))
	return s
}
