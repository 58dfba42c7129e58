package finding

import "math"

// The sequential test. Each window moves a stream's score: down by rest where its interval meets what is expected, up by as many
// standard deviations as it lies beyond, clip at most, less rest. At begin the symptom is there; at 0 it is gone. This is Page's cumulative
// sum ("Continuous Inspection Schemes", Biometrika 1954) of clipped deviations:
// one window alone never begins anything (clip-rest < begin), two far out do, and what is barely out needs several in a row.
const (
	clip  = 8
	rest  = 2
	begin = 10
	// top bounds the score, so that a symptom of hours ends (top/rest) windows after its last window.
	top = 12
)

// Score is the state of a test.
type Score struct {
	Sum    int
	Active bool
}

// Step takes a window: apart says that its interval does not meet what is expected, deviation by how many standard deviations.
func (s *Score) Step(apart bool, deviation float64) {
	s.Sum = min(top, max(0, s.Sum+step(apart, deviation)))
	switch {
	case s.Sum >= begin:
		s.Active = true
	case s.Sum == 0:
		s.Active = false
	}
}

func step(apart bool, deviation float64) int {
	if !apart || !(deviation > 0) {
		return -rest
	}
	return int(math.Floor(min(deviation, clip))) - rest
}

// RunLength is how many windows pass on average until the test begins something although nothing is wrong. chance gives the probability that a
// window of such a stream lies apart by x deviations or more (0 <= x); windows are independent; +Inf is more than 1e13. The score is a Markov chain on 0..begin-1
// (Brook and Evans, "An approach to the probability distribution of cusum run length", Biometrika 1972): the run lengths L solve L = 1 + P L.
func RunLength(chance func(x float64) float64) float64 {
	p := map[int]float64{}
	below := 1.
	for d := 1; d <= clip; d++ { // floor(deviation) = d-1 with chance(d-1) - chance(d)
		at := chance(float64(d))
		if d == 1 {
			p[-rest] += below - at
		} else {
			p[d-1-rest] += below - at
		}
		below = at
	}
	p[clip-rest] += below
	var a [begin][begin + 1]float64
	for from := range begin {
		a[from][from], a[from][begin] = 1, 1
		for by, q := range p {
			if to := max(0, from+by); to < begin {
				a[from][to] -= q
			}
		}
	}
	if n := solve(&a); n > 0 && n < longestRun {
		return n
	}
	return math.Inf(1)
}

// longestRun is what the elimination can tell from never: beyond it rounding is all that is left of 1 - P.
const longestRun = 1e13

// solve is Gauss' elimination with pivots; it returns the unknown of state 0.
func solve(a *[begin][begin + 1]float64) float64 {
	for col := range begin {
		pivot := col
		for r := col + 1; r < begin; r++ {
			if math.Abs(a[r][col]) > math.Abs(a[pivot][col]) {
				pivot = r
			}
		}
		a[col], a[pivot] = a[pivot], a[col]
		for r := range begin {
			if r == col || a[r][col] == 0 {
				continue
			}
			f := a[r][col] / a[col][col]
			for c := col; c <= begin; c++ {
				a[r][c] -= f * a[col][c]
			}
		}
	}
	return a[0][begin] / a[0][0]
}
