package lean

// limiter chooses what part of all flows' sum a flow must have to be reported: 2^-shift (definition 2 with the l1 norm), so
// that at no time more than 2^shift flows are above. As long as few flows are reported every one is: a link with a hundred
// connections has no use for a limit.
type limiter struct {
	budget int // a power of two
	share  int // its logarithm, or what the paper's forms need
	shift  int
	fixed  bool
}

// noLimit is a shift that leaves nothing of any sum.
const noLimit = 63

func newLimiter(budget, share int) *limiter {
	return &limiter{budget: budget, share: share, shift: noLimit}
}

// crowd times the budget is what the filter bears before it hides more flows than a coarser limit would.
const crowd = 4

// during a window: how many were reported so far.
func (l *limiter) during(reported int) {
	switch {
	case l.fixed:
	case l.shift == noLimit && reported > l.budget/4:
		l.shift = l.share
	case reported > crowd*l.budget:
		l.shift = max(l.shift-1, 0)
	}
}

// after a window: the next one's limit.
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
