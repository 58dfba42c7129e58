package delay

import "math"

// part is a cell of a row: n samples whose exponents x * -ln(1-1/M) have a known mean inside of [low, high).
type part struct {
	n, mean, low, high float64
}

// spread estimates the scatter of a row's exponents within its cells, by a normal distribution with the row's mean whose variance
// fits the cells: the variance between cells is known, that within them follows from the distribution truncated at their edges.
// With quarter bins a cell's factor is at most 0.26 % off whatever is assumed within it; this reduces it below 0.1 % for smooth
// distributions (TestSpread).
type spread struct {
	parts    []part
	n        float64
	mean     float64
	variance float64
}

func (s *spread) add(p part) {
	s.parts = append(s.parts, p)
	s.n += p.n
	s.mean += p.n * (p.mean - s.mean) / s.n
}

// alone is the variance, in squared cell widths, that is assumed for a cell with all samples of its row: with a larger one, some
// samples would lie outside.
const alone = 1.0 / 40

const spreadRounds = 6

func (s *spread) fit() {
	if len(s.parts) == 0 {
		return
	}
	if len(s.parts) == 1 {
		p := s.parts[0]
		margin := min(p.mean-p.low, p.high-p.mean)
		s.variance = min(alone*(p.high-p.low)*(p.high-p.low), margin*margin/4)
		return
	}
	s.variance = s.within(func(p part) float64 { return (p.high - p.low) * (p.high - p.low) / 12 })
	for range spreadRounds {
		s.variance = s.within(func(p part) float64 { _, v, _ := s.inside(p); return v })
	}
}

// within is the variance of the row when each part has the given variance inside.
func (s *spread) within(inside func(part) float64) float64 {
	total := 0.0
	for _, p := range s.parts {
		d := p.mean - s.mean
		total += p.n * (d*d + inside(p))
	}
	return total / s.n
}

// bulge is the ratio of the mean of the exponentials of a part to the exponential of its mean. One sample has no scatter, and n
// samples have n - 1 degrees of freedom.
func (s *spread) bulge(p part) float64 {
	if p.n <= 1 || s.variance < 1e-9 {
		return 1
	}
	_, _, b := s.inside(p)
	return math.Pow(b, 1-1/p.n)
}

const spreadSteps = 12

// inside integrates the normal distribution over a part: mean, variance, and bulge of the exponential.
func (s *spread) inside(p part) (mean, variance, bulge float64) {
	var weight, first, second, exponential float64
	step := (p.high - p.low) / spreadSteps
	peak := min(max(s.mean, p.low), p.high)
	for i := range spreadSteps {
		y := p.low + (float64(i)+0.5)*step
		w := math.Exp(((peak-s.mean)*(peak-s.mean) - (y-s.mean)*(y-s.mean)) / (2 * s.variance))
		weight += w
		first += w * y
		second += w * y * y
		exponential += w * math.Exp(y-p.low)
	}
	if weight == 0 { // narrower than a step: negligible scatter
		return p.mean, 0, 1
	}
	mean = first / weight
	variance = max(0, second/weight-mean*mean)
	return mean, variance, exponential / weight * math.Exp(p.low-mean)
}
