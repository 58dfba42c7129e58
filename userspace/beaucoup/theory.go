package beaucoup

import "math"

// Collector is a coupon collector: n of m coupons, each drawn with probability p.
type Collector struct {
	M, N int
	P    float64
}

// Draws is CC(m, p, n): the distinct attributes that it takes on average (lemma 4.3.1).
func (c Collector) Draws() float64 {
	mean, _ := c.moments()
	return mean
}

// moments are mean and variance of a sum of geometric variables.
func (c Collector) moments() (mean, variance float64) {
	for j := range c.N {
		q := c.P * float64(c.M-j)
		mean += 1 / q
		variance += (1 - q) / (q * q)
	}
	return mean, variance
}

// score ranks collectors: the mean deviation of normally distributed draws as a share of their mean, and bias. To minimise the
// mean of |draws - t| alone would prefer collectors that alert too early, since their deviation is smaller.
func score(mean, variance, t float64) float64 {
	return math.Sqrt(2/math.Pi*variance)/mean + math.Abs(mean/t-1)
}

// exactDraws bounds the work of Error: collectors that take more draws are scaled down, which moves the error by less
// than 0.1 points.
const exactDraws = 5000

// Error is the mean relative error of a collector for threshold t (section 4.3.1), exactly: the distribution of the number
// of distinct coupons after 1, 2, ... draws.
func (c Collector) Error(t float64) float64 {
	for c.Draws() > exactDraws {
		c.P *= 2
		t /= 2
	}
	state := make([]float64, c.N)
	state[0] = 1
	left, sum := 1.0, 0.0
	for draw := 1; left > 1e-9 && draw < 100*exactDraws; draw++ {
		q := c.P * float64(c.M-c.N+1)
		done := state[c.N-1] * q
		state[c.N-1] -= done
		for j := c.N - 2; j >= 0; j-- {
			move := state[j] * c.P * float64(c.M-j)
			state[j] -= move
			state[j+1] += move
		}
		left -= done
		sum += done * math.Abs(float64(draw)-t)
	}
	return sum / t
}

// best is the collector with the smallest error for threshold t that draws limit coupons a packet or fewer; survival is
// the share of drawn coupons that ties leave (section 4.3.2, with the correction that section 4.4.1 leaves open). Its draws
// are within 5 % of t, or within more where there is none. j is the exponent: p = 2^-j.
func best(t, limit, survival float64, word int) (found Collector, j int) {
	for tolerance := 0.05; tolerance < 1; tolerance *= 2 {
		if found, j = within(tolerance, t, limit, survival, word); found.M > 0 {
			return found, j
		}
	}
	j = min(maxExponent, max(0, int(math.Ceil(-math.Log2(limit))))) // even one coupon takes longer: the nearest there is
	return Collector{M: 1, N: 1, P: math.Ldexp(1, -j)}, j
}

// within is the best collector whose draws are t to the tolerance; M is 0 when there is none.
func within(tolerance, t, limit, survival float64, word int) (found Collector, j int) {
	smallest := math.Inf(1)
	for e := 0; e <= maxExponent; e++ {
		p := math.Ldexp(1, -e)
		for m := min(word, int(math.Floor(limit/p+1e-9))); m >= 1; m-- {
			mean, variance := 0.0, 0.0
			for n := 1; n <= m && mean <= t*(1+tolerance); n++ {
				q := p * survival * float64(m-n+1)
				mean += 1 / q
				variance += (1 - q) / (q * q)
				off := math.Abs(mean/t - 1)
				if s := score(mean, variance, t); off <= tolerance && s < smallest-1e-12 {
					smallest, found, j = s, Collector{M: m, N: n, P: p}, e
				}
			}
		}
	}
	return found, j
}

// survivals are the shares of drawn coupons that are collected, by attribute: none of the others draws, or one and the coin
// falls right. x are the probabilities that a packet draws.
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
