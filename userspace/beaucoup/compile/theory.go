package compile

import "math"

// Collector is a coupon collector: n of m coupons, each drawn with probability p.
type Collector struct {
	M, N int
	P    float64
}

// Draws is CC(m, p, n): the mean number of distinct attributes for n coupons (lemma 4.3.1).
func (c Collector) Draws() float64 {
	mean, _ := c.Moments()
	return mean
}

// Moments are mean and variance of a sum of geometric variables.
func (c Collector) Moments() (mean, variance float64) {
	for j := range c.N {
		q := c.P * float64(c.M-j)
		mean += 1 / q
		variance += (1 - q) / (q * q)
	}
	return mean, variance
}

// score ranks collectors by their mean relative error, with normally distributed draws. The deviation of collectors that alert
// too early is scaled up to t: otherwise they would be preferred, because theirs is smaller.
func score(mean, variance, t float64) float64 {
	bias, sd := mean/t-1, math.Sqrt(variance)/min(mean, t)
	if sd == 0 {
		return math.Abs(bias)
	}
	z := bias / sd
	return math.Sqrt(2/math.Pi)*sd*math.Exp(-z*z/2) + bias*math.Erf(z/math.Sqrt2)
}

// exactDraws bounds the work of arrivals: collectors that need more draws are scaled down, which changes the error by less than
// 0.1 percentage points.
const exactDraws = 5000

// arrivals calls visit with 1, 2, ... draws and the probability that the collector needs exactly so many, until the remaining
// probability is at most tail. It follows the distribution of the number of distinct coupons after each draw.
func (c Collector) arrivals(tail float64, visit func(draws, chance float64)) {
	scale := 1.0
	for c.Draws() > exactDraws {
		c.P *= 2
		scale *= 2
	}
	state := make([]float64, c.N)
	state[0] = 1
	left := 1.0
	for draw := 1; left > tail && draw < 100*exactDraws; draw++ {
		q := c.P * float64(c.M-c.N+1)
		done := state[c.N-1] * q
		state[c.N-1] -= done
		for j := c.N - 2; j >= 0; j-- {
			move := state[j] * c.P * float64(c.M-j)
			state[j] -= move
			state[j+1] += move
		}
		left -= done
		visit(scale*float64(draw), done)
	}
}

// Error is the mean relative error of a collector for threshold t (section 4.3.1), exactly.
func (c Collector) Error(t float64) (sum float64) {
	c.arrivals(1e-9, func(draws, chance float64) { sum += chance * math.Abs(draws-t) })
	return sum / t
}

// Quantiles are the numbers of draws that shares of all collectors need at most; shares ascend.
func (c Collector) Quantiles(shares ...float64) []float64 {
	found, arrived := make([]float64, 0, len(shares)), 0.0
	c.arrivals(1e-6, func(draws, chance float64) {
		for arrived += chance; len(found) < len(shares) && arrived >= shares[len(found)]; {
			found = append(found, draws)
		}
	})
	return found
}

// best is the collector with the smallest error for threshold t that draws at most limit coupons a packet; survival is the share
// of drawn coupons that is not lost to ties (section 4.3.2, with the correction that section 4.4.1 leaves open). Its draws are
// within 2.5 % of t, or if there is none, within 5 %, 10 % ...: starting with the paper's 5 % would use up the whole bias that an
// alert may have. p is 2^-j or one of the multiples of it.
func best(t, limit, survival float64, word int, multiples ...float64) (found Collector, j int) {
	for tolerance := 0.025; tolerance < 1; tolerance *= 2 {
		if found, j = within(tolerance, t, limit, survival, word, multiples); found.M > 0 {
			return found, j
		}
	}
	j = min(maxExponent, max(0, int(math.Ceil(-math.Log2(limit))))) // even one coupon needs more draws than t: take the nearest
	return Collector{M: 1, N: 1, P: math.Ldexp(1, -j)}, j
}

// within is the best collector whose draws equal t within the tolerance; M is 0 if there is none.
func within(tolerance, t, limit, survival float64, word int, multiples []float64) (found Collector, j int) {
	s := search{tolerance: tolerance, t: t, limit: limit, survival: survival, word: word, smallest: math.Inf(1)}
	for e := 0; e <= maxExponent; e++ {
		s.at(math.Ldexp(1, -e), e)
		for _, k := range multiples {
			if p := math.Ldexp(k, -e); p < 1 {
				s.at(p, e)
			}
		}
	}
	return s.found, s.exponent
}

// oddMultiples of powers of two are allowed as probabilities with coupons in two words: otherwise thresholds half-way between
// those that suit powers of two would err by up to 12.9 % instead of 12.5 %. With one word they are not allowed, because a switch
// needs only one rule a coupon for powers of two.
var oddMultiples = []float64{3, 5, 7}

// count is the number of coupons out of m with probability p at which draws are closest to t, by score.
func count(m int, p, t float64) (n int) {
	smallest, mean, variance := math.Inf(1), 0.0, 0.0
	for k := 1; k <= m; k++ {
		q := p * float64(m-k+1)
		mean += 1 / q
		variance += (1 - q) / (q * q)
		if x := score(mean, variance, t); x < smallest {
			smallest, n = x, k
		}
	}
	return n
}

// search is for the collector with the smallest score.
type search struct {
	tolerance, t, limit, survival float64
	word                          int
	smallest                      float64
	found                         Collector
	exponent                      int
}

// at looks at all collectors whose coupons have probability p, a multiple of 2^-e.
func (s *search) at(p float64, e int) {
	for m := min(s.word, int(math.Floor(s.limit/p+1e-9))); m >= 1; m-- {
		mean, variance := 0.0, 0.0
		for n := 1; n <= m && mean <= s.t*(1+s.tolerance); n++ {
			q := p * s.survival * float64(m-n+1)
			mean += 1 / q
			variance += (1 - q) / (q * q)
			if math.Abs(mean/s.t-1) > s.tolerance {
				continue
			}
			if x := score(mean, variance, s.t); x < s.smallest-1e-12 {
				s.smallest, s.found, s.exponent = x, Collector{M: m, N: n, P: p}, e
			}
		}
	}
}

// survivals are the shares of drawn coupons that are collected, by attribute: no other attribute draws, or one does and loses the
// coin toss. x are the probabilities that a packet draws.
func survivals(x []float64) []float64 {
	s := make([]float64, len(x))
	for a := range x {
		none, one := 1.0, 0.0
		for b, p := range x {
			if a != b {
				none, one = none*(1-p), one*(1-p)+none*p
			}
		}
		s[a] = none + one/2
	}
	return s
}

// Law is the distribution of the collector's draws.
func (c Collector) Law() (l law) {
	c.arrivals(1e-6, func(draws, chance float64) {
		l.draws, l.chance = append(l.draws, draws), append(l.chance, chance)
	})
	return l
}

// Slope is the exponent a at which half collectors have c.Half() coupons for each one with all.
func (c Collector) Slope(half float64, all law) float64 {
	part := Collector{M: c.M, N: c.Half(), P: c.P}.Law()
	low, high := 0.0, float64(steepest)
	for range 20 {
		if a := (low + high) / 2; part.mean(a) < half*all.mean(a) {
			low = a
		} else {
			high = a
		}
	}
	return low
}

// Fewer is the exponent a with which keys get fewer with their size, by the number of collectors with 0, 1, ... coupons.
func (c Collector) Fewer(have [65]int) float64 {
	half, all := 0, 0
	for k, n := range have {
		if k >= c.Half() {
			half += n
		}
		if k >= c.N {
			all += n
		}
	}
	return c.Slope(float64(half)/float64(max(1, all)), c.Law())
}

// Half of the coupons for an alert.
func (c Collector) Half() int { return max(1, (c.N+1)/2) }

// Hopeless reports whether a collector with k coupons will not alert; ratio is the remaining part of its window over the elapsed
// part. A collector that has alerted is not hopeless, so that it stays and does not alert again in its window.
func (c Collector) Hopeless(k int, ratio float64) bool {
	if k >= c.N {
		return false
	}
	mean, variance := c.between(0, k+1)
	most := (mean + certain*math.Sqrt(variance)) * ratio
	mean, variance = c.between(k, c.N)
	return most < mean-certain*math.Sqrt(variance)
}

// between are mean and variance of the time from k to n coupons, if attributes arrive at random, one per unit of time.
func (c Collector) between(k, n int) (mean, variance float64) {
	for j := k; j < n; j++ {
		q := c.P * float64(c.M-j)
		mean += 1 / q
		variance += 1 / (q * q)
	}
	return mean, variance
}

// certain is how many standard deviations a collector must be away from its alert to be hopeless, of both its count so far and
// the missing draws.
const certain = 3
