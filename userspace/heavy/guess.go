package heavy

import "math"

// Entries record in the upper bits of their counters the value at which they were taken (bpf/include/ways.h): the part of the
// estimate for the flow's earlier packets, whose number is random.

const (
	noteAt    = 54
	countMask = 1<<noteAt - 1
)

// split returns the parts of a counter's word: the count, and the value at admission; an empty Guess if none is recorded.
func (w *Ways) split(word uint64) (stored uint64, note Guess) {
	if !w.Noted {
		return word, Guess{}
	}
	code := word >> noteAt
	m, e := 16+code&15, int(code>>4)
	if e <= 4 {
		return word & countMask, admitted(float64(m>>(4-e)), float64(m>>(4-e)))
	}
	return word & countMask, admitted(math.Ldexp(float64(m)+.5, e-4), math.Ldexp(float64(m+1), e-4)-1) // the middle of its range
}

// Guess is the part of an estimate that was set at admission, over all CPUs.
type Guess struct {
	Mean       float64 // the number of packets sent by then is the same on average
	most       float64 // ... if notes were truncated by the maximum
	variance   float64
	admissions int
	// of the only or the last admission: ends of its middle 95 %
	low, high float64
}

// Ends of the middle 95 % of an exponential distribution with mean 1, the end of its first 95 %, and of the middle ones of a normal
// distribution with deviation 1.
var exponentialLow, exponentialHigh, exponentialFirst, normal = -math.Log(.975), -math.Log(.025), -math.Log(.05), 1.96

// admitted with a value, or with at most as much: the packets until then, this one included, were trials with a chance of one in
// that value.
func admitted(value, most float64) Guess {
	g := Guess{Mean: value, most: most, variance: value * max(0, value-1), admissions: 1, low: 1, high: 1}
	if value > 1 {
		rate := -math.Log1p(-1 / value)
		g.low, g.high = max(1, math.Ceil(exponentialLow/rate)), math.Ceil(exponentialHigh/rate)
		if g.low == 1 { // nothing is below
			g.high = math.Ceil(exponentialFirst / rate)
		}
	}
	return g
}

// Unnoted is the guess of an estimate without a recorded admission: it was no more than the estimate, and on average no more than
// the counters that others compete with now. All of it may be a guess.
func Unnoted(estimate, smallest float64) Guess { return admitted(min(estimate, smallest), estimate) }

// plus adds another admission.
func (g Guess) plus(o Guess) Guess {
	o.Mean += g.Mean
	o.most += g.most
	o.variance += g.variance
	o.admissions += g.admissions
	if o.admissions > 1 {
		o.low, o.high = gamma(o.Mean, o.variance)
	}
	return o
}

// gamma are the ends of the middle 95 % of a gamma distribution: a sum of exponential ones is nearly one. Wilson and Hilferty, "The
// distribution of chi-square", PNAS 17, 1931.
func gamma(mean, variance float64) (low, high float64) {
	if variance <= 0 {
		return mean, mean
	}
	ninth := variance / (9 * mean * mean)
	at := func(z float64) float64 { return mean * math.Pow(max(0, 1-ninth+z*math.Sqrt(ninth)), 3) }
	return at(-normal), at(normal)
}

// Admissions is the number of admissions in the guess.
func (g Guess) Admissions() float64 { return float64(g.admissions) }

// Deviation is the standard error of an estimate with this guess in it.
func (g Guess) Deviation() float64 { return math.Sqrt(g.variance) }

// Counted is the part of an estimate that was counted packet by packet: a lower bound of the flow.
func (g Guess) Counted(estimate float64) float64 {
	return max(0, estimate-g.most+float64(g.admissions))
}

// Bounds are the counted part, and the upper end of the interval. They are used if little is known about a flow's admission.
func (g Guess) Bounds(estimate float64) (least, most float64) {
	_, high := g.Interval(estimate)
	return g.Counted(estimate), high
}

// Doubtful: less than half of an estimate was counted, so the flow may have less than half of it.
func (g Guess) Doubtful(estimate float64) bool { return 2*g.Counted(estimate) < estimate }

// Interval contains the truth in 95 % of all cases. The number of small, lucky flows is unknown, so a doubtful estimate has
// the counted part as its lower end.
func (g Guess) Interval(estimate float64) (low, high float64) {
	low, high = estimate-g.Mean+g.low, estimate-g.Mean+g.high
	if g.Doubtful(estimate) {
		low = g.Counted(estimate)
	}
	return max(0, low), high
}
