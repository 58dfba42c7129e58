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
	span        int64
	sum, time   float64 // what left lately while it was busy
}

// rateSpan is how long the largest rate is kept, at least: a link that has become slower makes bounds wider until then.
const rateSpan = 1 << 33 // 8.6 s

// leastSent is how many packets a rate is measured over at least: it is too high by one of them.
const leastSent = 8

// most is the rate that nothing has exceeded; infinite where none is known.
func (l *link) most() float64 {
	if most := max(l.now, l.before); most > 0 {
		return most
	}
	return math.Inf(1)
}

// learn takes the rate of the whole snapshots of a report: its packet came before them, so the link was busy.
func (l *link) learn(c *config, e *event) {
	if e.Reach == 0 {
		return
	}
	interval, _ := c.windowOf(e)
	s, packet := c.sumsOf(e), c.packetOf(e)
	t := float64(e.Time&uint64(interval-1)) + float64(e.Reach-1)*float64(interval)
	if t < float64(interval)/2 || s.fullAll < leastSent*packet {
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

// busy takes what left between two reports, of which the later packet came before the earlier one left.
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
	v := evidence{size: size, total: total}
	if e.Reach == 0 { // it came while the snapshot was being written
		before, during := l.sent(inside-delay, packet), l.sent(delay, packet)
		v.least, v.most = max(0, size-collided-before), min(size, during)
		v.othersMin, v.othersMax = max(0, total-size-before), min(max(0, total-size)+collided, during)
		return v
	}
	unseen := c.unseen(l, e)
	edge := float64(e.Edge) / (1 << 16)
	before, during := l.sent(window*(1-edge), packet), l.sent(window*edge, packet)
	if edge == 1 {
		before = 0 // all of it is meant
	}
	others := max(0, s.oldAll-s.old)
	leastOld, leastOthers := max(0, s.old-collided-before), max(0, others-before)
	v.least = max(0, s.full-collided) + leastOld
	v.most = s.full + max(0, min(s.old, during-leastOthers)) + unseen + rounding
	v.othersMin = max(0, s.fullAll-s.full-rounding) + leastOthers
	v.othersMax = max(0, s.fullAll-s.full) + max(0, min(others+collided, during-leastOld)) + collided + unseen + rounding
	return v
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

// sums of a report: of the flow and of all, in the snapshots behind the oldest one that was read, and in that.
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

// since is what left between two reports, of one flow or (all) of everybody: exact where both know the same snapshots.
func (s sums) since(o sums, all bool) (n float64, known bool) {
	if s.wide != o.wide {
		return 0, false
	}
	mine, old, theirs, before := s.full, s.old, o.full, o.old
	if all {
		mine, old, theirs, before = s.fullAll, s.oldAll, o.fullAll, o.oldAll
	}
	n = mine - theirs
	switch s.oldest - o.oldest {
	case 0:
		known = true
	case 1:
		n, known = n+old, !s.unread
	case -1:
		n, known = n-before, !o.unread
	}
	return max(0, n), known && n >= -rounding
}

// point is what certainly left of a burst up to a time.
type point struct {
	time  int64
	least float64
}

// mostPoints of a burst are remembered: where they are too many, every second one of the older half goes.
const mostPoints = 256

// portion is what is known of a burst, of one flow or of all, over the reports so far. At least: the best of what reports show that do not overlap, and of what left between two
// of them. At most: what the link can have sent where nothing better is known.
type portion struct {
	points []point
	most   float64
	until  int64 // departure of the report that most is up to
	last   sums  // of that report
	told   bool
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

// proven adds a point, if it says more than those that are there.
func (p *portion) proven(time int64, least float64) {
	if n := len(p.points); n > 0 && (least <= p.points[n-1].least || time < p.points[n-1].time) {
		return
	}
	if len(p.points) == mostPoints {
		kept := p.points[:0]
		for i, one := range p.points {
			if i%2 == 0 || i > mostPoints/2 {
				kept = append(kept, one)
			}
		}
		p.points = kept
	}
	p.points = append(p.points, point{time, least})
}

// grow adds a report. since is what left since the last one, if that is known; least and most are what it shows by itself.
func (p *portion) grow(c *config, l *link, e *event, from int64, since float64, known bool, least, most float64) {
	time, arrival, packet := int64(e.Time), int64(e.Time-e.Delay), c.packetOf(e)
	if arrival >= from {
		p.proven(time, p.leastAt(arrival)+least)
	}
	begin := from
	if p.told {
		begin = p.until
	}
	switch {
	case p.told && known:
		p.proven(time, p.leastAt(p.until)+since)
		p.most += since + rounding
	case p.told && time <= begin:
		return
	default:
		p.most += min(l.sent(float64(time-begin), packet), most+l.sent(float64(arrival-begin), packet))
	}
	p.until, p.last, p.told = time, c.sumsOf(e), true
}

func (p *portion) ofFlow(c *config, l *link, e *event, from int64) {
	v := c.evidenceOf(l, e)
	since, known := c.sumsOf(e).since(p.last, false)
	least := p.leastAt(p.until)
	p.grow(c, l, e, from, since, known && e.Wide == 0, v.least, v.most)
	if known && e.Wide != 0 { // of coarse snapshots a flow may lack what was not folded
		p.proven(int64(e.Time), least+since)
	}
}

func (p *portion) ofAll(c *config, l *link, e *event, from int64) {
	s, v := c.sumsOf(e), c.evidenceOf(l, e)
	since, known := s.since(p.last, true)
	if p.told && known && int64(e.Time-e.Delay) <= p.until {
		l.busy(since, float64(int64(e.Time)-p.until), c.packetOf(e))
	}
	p.grow(c, l, e, from, since, known, v.least+v.othersMin, s.fullAll+s.oldAll+c.unseen(l, e)) // the oldest snapshot began before the packet came
}

// mostUntil is what can have left by a later time.
func (p *portion) mostUntil(l *link, time int64, packet float64) float64 {
	if rate := l.most(); time > p.until && !math.IsInf(rate, 1) {
		return p.most + l.sent(float64(time-p.until), packet)
	}
	return p.most + packet
}

// shareOf a flow of all that left in a burst.
func (b *burst) shareOf(l *link, p *portion, value, packet float64) share {
	all, most := b.all.mostUntil(l, b.last, packet), p.mostUntil(l, b.last, packet)
	s := share{high: 1}
	if all > 0 && !math.IsInf(all, 1) {
		s.low = min(1, p.least()/all)
	}
	if least := b.all.least(); most < least {
		s.high = max(s.low, most/least)
	}
	s.value = max(s.low, min(s.high, value))
	return s
}
