// Package control is the loop that grants slices what they may use: a hundred times a second it reads what arrived of each, divides the link's
// capacity, and writes what each may take (Chen, section 6.3.2). It asks neither kernel nor clock.
package control

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/ahab/share"
	"github.com/xdpmon/xdpmon/userspace/ahab/slices"
	"github.com/xdpmon/xdpmon/userspace/ahab/spacing"
)

// Registers are those of the data plane, by a slice's number.
type Registers interface {
	// Bytes are what arrived, what was dropped, and what of that a ceiling refused, ever since.
	Bytes(slice int) (offered, dropped, refused uint64)
	// Allow sets what a slice may take, bytes a second; +Inf: anything.
	Allow(slice int, rate float64)
	// Space sets how many bytes a TCP flow above the limit sends between two losses.
	Space(slice int, bytes uint32)
	// Crowded reports whether two users or more of a slice were above its limit lately.
	Crowded(slice int, now int64) bool
	// Spare sets until when nobody is limited, ns of the packets' clock; 0: somebody may be.
	Spare(slice int, until int64)
}

// How demand follows from what arrives. A slice that is limited sends what its limit lets it: what it wants shows only in that it sends nearly
// all that it may, or loses packets. A TCP flow that has just lost one sends two thirds.
const (
	smoothing  = 0.02 // seconds: what arrives is averaged over
	begins     = 0.9  // of what it may take: it wants more
	ends       = 0.6  // below that it does not any more
	most       = 2    // of what it may take: what arrives beyond that would be remembered for too long
	remembered = 0.1  // seconds that a loss counts for
	headroom   = 1.25 // what one that wants no more may grow by until the next time
	least      = 1000 // bytes a second that everybody may use: no slice is ever shut
	settled    = 0.2  // seconds: what losses do to TCP is averaged over
	longest    = 1.   // seconds: after a longer pause the loop restarts
)

// A slice's account is what it has passed beyond what it may, as in a queue that nobody waits in: as long as it is small, a user that has the slice for itself needs no
// limit, whatever the rates of a moment read. Windows that arrive at once read many times too high, and below a millisecond of round trip there is nothing
// else. Where the slice may take all of its ceiling, a user alone needs none at all: the ceiling bounds it, and what AHAB drops before it is lost
// for nothing. Where users share, the limit divides from the first packet on.
const (
	account = 0.2   // seconds of what it may take, at most
	small   = 0.025 // seconds
	whole   = 0.99  // of its ceiling: the slice may take all of it
	holds   = 100e6 // ns that the answer holds, so that limits return when nobody renews it
)

// flow is what is known of a slice.
type flow struct {
	offered, dropped, refused uint64
	rate                      float64
	account                   float64 // bytes
	arrived, passed, stopped  float64 // averaged over some round trips; stopped: by a ceiling
	spacing                   float64
	lost                      float64 // seconds since it lost something
	busy                      bool
	allowed                   float64
	written                   bool // allowed stands in the registers
}

// Loop divides for a plan.
type Loop struct {
	plan  *slices.Plan
	tree  *share.Tree
	flows map[int]*flow // by number
	order []*flow       // of the plan's leaves
	last  int64
}

// New is a loop for a plan. before may be nil: what it knew of slices that stay is taken over. apart is how many bytes of a TCP flow there are
// between two losses to begin with; 0: Spacing.
func New(plan *slices.Plan, before *Loop, apart float64) *Loop {
	l := &Loop{plan: plan, tree: share.New(plan.Nodes), flows: map[int]*flow{}}
	known := map[string]*flow{}
	if before != nil {
		l.last = before.last
		for i, leaf := range before.plan.Leaves {
			known[leaf.Name] = before.order[i]
		}
	}
	for _, leaf := range plan.Leaves {
		f := known[leaf.Name]
		if f == nil {
			f = &flow{lost: math.Inf(1), offered: math.MaxUint64, allowed: math.Inf(1), spacing: apart}
			if apart == 0 {
				f.spacing = Spacing(leaf.Full / 2)
			}
		}
		f.written = false
		l.flows[leaf.Number] = f
		l.order = append(l.order, f)
	}
	return l
}

// Tick reads, divides and writes. now is in nanoseconds. It reports how long the loop had not run, in seconds, if that was too long to use
// what it knew (negative: the clock was set back by that): then it restarts, and slices may take what they could before.
func (l *Loop) Tick(now int64, r Registers) (away float64) {
	dt := float64(now-l.last) / 1e9
	fresh := l.last == 0 || dt <= 0 || dt > longest
	if fresh && l.last != 0 {
		away = dt
	}
	l.last = now
	for i := range l.plan.Leaves {
		leaf, f := &l.plan.Leaves[i], l.order[i]
		offered, dropped, refused := r.Bytes(leaf.Number)
		if !fresh && offered >= f.offered && dropped >= f.dropped && refused >= f.refused {
			f.see(float64(offered-f.offered)/dt, float64(dropped-f.dropped)/dt, float64(refused-f.refused)/dt, dt)
		}
		f.offered, f.dropped, f.refused = offered, dropped, refused
		l.tree.Demand(leaf.Node, f.demand())
	}
	l.tree.Divide()
	for i := range l.plan.Leaves {
		leaf, f := &l.plan.Leaves[i], l.order[i]
		allowed := max(least, l.tree.Grant(leaf.Node))
		apart := f.space(allowed)
		if allowed != f.allowed || !f.written {
			f.allowed = allowed
			r.Allow(leaf.Number, allowed)
		}
		if apart != uint32(f.spacing) || !f.written {
			r.Space(leaf.Number, apart)
		}
		f.spacing, f.written = float64(apart), true
		r.Spare(leaf.Number, f.spare(now, r.Crowded(leaf.Number, now), leaf.Ceiling))
	}
	return away
}

// see takes what arrived in the time since the last tick.
func (f *flow) see(rate, lost, refused, dt float64) {
	if f.charge(rate-min(rate, lost), dt); math.IsNaN(f.account) || math.IsInf(f.allowed, 1) {
		f.account = 0
	}
	f.rate += (min(rate, most*f.allowed) - f.rate) * min(1, dt/smoothing)
	f.lost += dt
	if lost > 0 {
		f.lost = 0
	}
	f.arrived += (rate - f.arrived) * min(1, dt/settled)
	f.passed += (rate - min(rate, lost) - f.passed) * min(1, dt/settled)
	f.stopped += (refused - f.stopped) * min(1, dt/settled)
	share := f.rate / f.allowed
	f.busy = share >= begins || share >= ends && (f.busy || f.lost < remembered)
}

// charge takes what passed, and what might have.
func (f *flow) charge(passed, dt float64) {
	f.account = max(0, min(account*f.allowed, f.account+(passed-f.allowed)*dt))
}

// spare is until when nobody is limited. ceiling: bytes a second that the slice never passes; 0: no such.
func (f *flow) spare(now int64, crowded bool, ceiling float64) int64 {
	bounded := ceiling > 0 && f.allowed >= whole*ceiling
	if crowded || !bounded && f.account > small*f.allowed {
		return 0
	}
	return now + holds
}

// space is how far losses are apart under what the slice may take now: what its use shows, and the square of what that has changed by.
func (f *flow) space(allowed float64) uint32 {
	old := f.spacing
	if change := allowed / f.allowed; f.busy && !math.IsInf(f.allowed, 1) && math.Abs(change-1) > 0.01 {
		old *= change * change
	}
	old = max(spacing.Least, min(spacing.Most, old))
	return spacing.Next(uint32(old), spacing.Slice{Offered: f.arrived, Passed: f.passed, Refused: f.stopped, Capacity: f.allowed, Lost: f.lost <= settled})
}

// Spacing is where the search begins: how many bytes beyond a rate (bytes a second) a TCP flow sends between two losses that keep its mean there, when
// its round trip takes 50 ms and its window of W segments grows by about half a segment in each: cut to .7, it has to reach 1.18 W, and is beyond W
// for .34 W round trips. On shorter trips that is too far, which the ceiling bounds until the search has found what divides; a search that began too near would
// end the first window that grows at a fraction of what there is.
func Spacing(rate float64) float64 {
	const segment, trip = 1514, 0.05
	window := max(4, rate*trip/segment)
	return max(spacing.Least, min(spacing.Most, 0.03*window*window*segment))
}

// demand of a slice: anything, when it takes all it may.
func (f *flow) demand() float64 {
	if f.busy {
		return math.Inf(1)
	}
	return f.rate * headroom
}

// Allowed is what a leaf of the plan may take, bytes a second.
func (l *Loop) Allowed(leaf int) float64 { return l.order[leaf].allowed }

// Demand is what arrived of a leaf lately, bytes a second.
func (l *Loop) Demand(leaf int) float64 { return l.order[leaf].rate }
