package expect

import "math"

const (
	boundEvents = 3   // standard deviations of the events that were missed
	mostMissed  = 0.9 // share
	boundFalse  = 1. / 40
	manyEvents  = 100 // from here on the binomial distribution is approximated by the normal one
)

// Lower is the lower bound of a flow's true events when x events were counted, each false with probability share: x less the
// number of false ones, which a binomial variable does not exceed in 39 of 40 cases.
func Lower(x, share float64) float64 {
	switch n := math.Ceil(x); {
	case share <= 0:
		return x
	case share >= 1:
		return 0
	case n > manyEvents:
		return max(0, x*(1-share)-2*math.Sqrt(x*share*(1-share))-1) // 1: the distribution is skewed
	default:
		none, chance, odds := 0.0, math.Pow(1-share, n), share/(1-share)
		for left := 1 - chance; left > boundFalse && none < n; left -= chance {
			chance *= odds * (n - none) / (none + 1)
			none++
		}
		return max(0, x-none)
	}
}

// Upper is the upper bound of a flow's events when x were seen, each with probability 1 - share: the number that was missed is
// negative binomial, with mean (x + 1) r and variance (x + 1) r (1 + r), r = share / (1 - share), if nothing else is known of the
// flow.
func Upper(x, share float64) float64 {
	share = min(share, mostMissed)
	r := share / (1 - share)
	return x + (x+1)*r + boundEvents*math.Sqrt((x+1)*r*(1+r))
}
