package lean

import (
	"math"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
)

// countable is a statistic of events that a table may miss, because another flow keeps theirs out or because it does not know
// yet what was before. What it counts is too small by that, never too large but for the sketch's noise.
type countable interface {
	// missed is the share of a flow's events that may be missed, and what one event counts on average.
	missed(n counts) (share, size float64)
}

// refutable is a statistic whose tables make events of what was none.
type refutable interface {
	// refuted is the share of what was counted that may be no event.
	refuted(n counts) float64
}

const (
	boundNoise  = 3   // standard errors of the sketch
	boundEvents = 3   // standard deviations of the events that were missed
	mostMissed  = 0.9 // share
	boundFalse  = 1. / 40
	manyEvents  = 100 // from here on a binomial number is a normal one
)

// lower is what a flow has at least had of which x events were seen, each of them false with a probability: what a binomial number
// does not exceed in 39 of 40 cases is taken off.
func lower(x, share float64) float64 {
	switch n := math.Ceil(x); {
	case share <= 0:
		return x
	case share >= 1:
		return 0
	case n > manyEvents:
		return max(0, x*(1-share)-2*math.Sqrt(x*share*(1-share))-1) // 1: it is skewed
	default:
		none, chance, odds := 0.0, math.Pow(1-share, n), share/(1-share)
		for left := 1 - chance; left > boundFalse && none < n; left -= chance {
			chance *= odds * (n - none) / (none + 1)
			none++
		}
		return max(0, x-none)
	}
}

// upper is what a flow may have had of which x events were seen, each with probability 1 - share: a negative binomial number was not,
// of mean (x + 1) r and variance (x + 1) r (1 + r) with r = share / (1 - share), if nothing is known of the flow before.
func upper(x, share float64) float64 {
	share = min(share, mostMissed)
	r := share / (1 - share)
	return x + (x+1)*r + boundEvents*math.Sqrt((x+1)*r*(1+r))
}

// bounds of a flow's value, both in the sketch's unit; NaN where nothing is promised.
func (i *estimator) bounds(s stat, value, noise float64, n counts) (low, high float64) {
	c, ok := i.statistics[s].(countable)
	if !ok || i.walks(s) {
		return math.NaN(), math.NaN()
	}
	share, size := c.missed(n)
	size = max(size, 1)
	low = value
	if r, ok := c.(refutable); ok {
		low = size * lower(value/size, r.refuted(n))
	}
	return max(0, low-boundNoise*noise), size*upper(value/size, share) + boundNoise*noise
}

// share of a part; 0 of nothing.
func shareOf(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// eventSize is what an event of a statistic counts on average.
func (c counts) eventSize(s stat) float64 {
	return float64(c.total(s)) / max(1, float64(c.of(bpf.LeanLeanCounterLEAN_EVENTS, s)))
}
