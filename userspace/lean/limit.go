package lean

// limiter chooses the share of all flows' sum at which a flow is reported: 2^-shift (definition 2 with the l1 norm), so that at
// most 2^shift flows exceed it at any time. While few flows are reported there is no limit: a link with a hundred connections
// needs none.
type limiter struct {
	budget int // a power of two
	share  int // log2 of budget, or the fixed shift that the paper's forms need
	shift  int
	fixed  bool
}

// noLimit is a shift that reduces every sum to 0: each flow is reported.
const noLimit = 63

func newLimiter(budget, share int) *limiter {
	return &limiter{budget: budget, share: share, shift: noLimit}
}

// overload times the budget is the number of reported flows up to which the Bloom filter's false positives hide fewer flows than
// a higher limit would.
const overload = 4

// during adjusts the limit within a window; reported is the number of flows so far.
func (l *limiter) during(reported int) {
	switch {
	case l.fixed:
	case l.shift == noLimit && reported > l.budget/4:
		l.shift = l.share
	case reported > overload*l.budget:
		l.shift = max(l.shift-1, 0)
	}
}

// after chooses the next window's limit; reported is the number of flows of the window that ended.
func (l *limiter) after(reported int) {
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
