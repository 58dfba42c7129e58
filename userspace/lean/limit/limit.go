// Package limit chooses which flows are reported.
package limit

// Limiter chooses the share of all flows' sum at which a flow is reported: 2^-shift (definition 2 with the l1 norm), so that at
// most 2^shift flows exceed it at any time. While few flows are reported there is no limit: a link with a hundred connections
// needs none.
type Limiter struct {
	budget int // a power of two
	share  int // log2 of budget, or the fixed shift that the paper's forms need
	shift  int
	fixed  bool
}

// noLimit is a shift that reduces every sum to 0: each flow is reported.
const noLimit = 63

// Fixed is a limiter that keeps its shift.
func Fixed(budget, shift int) *Limiter { return &Limiter{budget: budget, shift: shift, fixed: true} }

// Shift is the current one.
func (l *Limiter) Shift() int { return l.shift }

// New returns a limiter of so many flows, which begins without a limit.
func New(budget, share int) *Limiter {
	return &Limiter{budget: budget, share: share, shift: noLimit}
}

// Overload times the budget is the number of reported flows up to which the Bloom filter's false positives hide fewer flows than
// a higher limit would.
const Overload = 4

// During adjusts the limit within a window; reported is the number of flows so far.
func (l *Limiter) During(reported int) {
	switch {
	case l.fixed:
	case l.shift == noLimit && reported > l.budget/4:
		l.shift = l.share
	case reported > Overload*l.budget:
		l.shift = max(l.shift-1, 0)
	}
}

// After chooses the next window's limit; reported is the number of flows of the window that ended.
func (l *Limiter) After(reported int) {
	switch {
	case l.fixed, l.shift == noLimit:
	case reported > 2*l.budget:
		l.shift = max(l.shift-1, 0)
	case reported < l.budget/4:
		l.shift = noLimit
	case reported < l.budget/2:
		l.shift++
	}
}
