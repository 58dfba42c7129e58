package finding

import "math"

// The sequential test. Each window moves a stream's score: up by as many standard deviations as it lies beyond what is expected, clip at most,
// less rest; down by rest, or by fall before anything has begun, where its interval meets what is expected. At the alarm the symptom is there; at 0
// it is gone. This is Page's cumulative sum ("Continuous Inspection Schemes", Biometrika 1954) of clipped deviations: one window alone never begins
// anything (clip-rest < alarm), two far out in a row do, and what is barely out needs several.
//
// A stream that has had odd windows before (single ones far out, which began nothing) needs more of them in a row: Needed.
const (
	clip  = 8
	rest  = 2
	fall  = 4
	alarm = 10
	more  = clip - rest // a further window that is needed
	// over bounds the score above its alarm, so that a symptom of hours ends soon after its last window.
	over = 2
)

// Score is the state of a test.
type Score struct {
	Sum    int
	Active bool
}

// Step takes a window. apart: its interval does not meet what is expected, deviation by how many standard deviations, and needed how many
// windows far out in a row begin something (2 or more).
func (s *Score) Step(apart bool, deviation float64, needed int) {
	at := alarm + more*(max(needed, 2)-2)
	by := step(apart, deviation)
	if s.Active && by < 0 {
		by = -rest
	}
	s.Sum = min(at+over, max(0, s.Sum+by))
	if s.Active {
		s.Sum = min(s.Sum, alarm+over)
	}
	switch {
	case s.Sum >= at:
		s.Active = true
	case s.Sum == 0:
		s.Active = false
	}
}

func step(apart bool, deviation float64) int {
	if !apart || !(deviation >= 1) {
		return -fall
	}
	return int(math.Floor(min(deviation, clip))) - rest
}

// Odd remembers how often a stream had windows far out that began nothing.
type Odd struct {
	Count, Windows float64
}

// Memory of odd windows: a day of windows of 10 s.
const oddMemory = 8640

// Pass takes a window.
func (o *Odd) Pass(odd bool) {
	const keep = 1 - 1./oddMemory
	o.Count, o.Windows = o.Count*keep, o.Windows*keep+1
	if odd {
		o.Count++
	}
}

// falseStart is the probability that a stream may begin something by odd windows that follow each other by chance: with 50 streams and windows of
// 10 s one in 20 days. mostNeeded bounds how long a true finding waits on a stream that is odd all the time.
const (
	falseStart = .05 / 50 / 8640
	mostNeeded = 8
)

// Needed is how many windows far out in a row chance does not make of odd ones.
func (o *Odd) Needed() int {
	rate := o.Count / (o.Windows + 100)
	if rate <= 0 {
		return 2
	}
	if rate >= .5 {
		return mostNeeded
	}
	return min(mostNeeded, max(2, int(math.Ceil(math.Log(falseStart)/math.Log(rate)))))
}

// RunLength is how many windows pass on average until the test begins something although nothing is wrong. chance gives the probability that a
// window of such a stream lies apart by x deviations or more (0 <= x); windows are independent; +Inf is more than 1e13. The score is a Markov chain on 0..alarm-1
// (Brook and Evans, "An approach to the probability distribution of cusum run length", Biometrika 1972): the run lengths L solve L = 1 + P L.
func RunLength(chance func(x float64) float64) float64 {
	p := map[int]float64{}
	below := 1.
	for d := 1; d <= clip; d++ { // floor(deviation) = d-1 with chance(d-1) - chance(d)
		at := chance(float64(d))
		if d == 1 {
			p[-fall] += below - at
		} else {
			p[d-1-rest] += below - at
		}
		below = at
	}
	p[clip-rest] += below
	var a [alarm][alarm + 1]float64
	for from := range alarm {
		a[from][from], a[from][alarm] = 1, 1
		for by, q := range p {
			if to := max(0, from+by); to < alarm {
				a[from][to] -= q
			}
		}
	}
	if n := solve(&a); n > 0 && n < longestRun {
		return n
	}
	return math.Inf(1)
}

// longestRun is what the elimination distinguishes from never: beyond it rounding is all that is left of 1 - P.
const longestRun = 1e13

// solve is Gauss' elimination with pivots; it returns the unknown of state 0.
func solve(a *[alarm][alarm + 1]float64) float64 {
	for col := range alarm {
		pivot := col
		for r := col + 1; r < alarm; r++ {
			if math.Abs(a[r][col]) > math.Abs(a[pivot][col]) {
				pivot = r
			}
		}
		a[col], a[pivot] = a[pivot], a[col]
		for r := range alarm {
			if r == col || a[r][col] == 0 {
				continue
			}
			f := a[r][col] / a[col][col]
			for c := col; c <= alarm; c++ {
				a[r][c] -= f * a[col][c]
			}
		}
	}
	return a[0][alarm] / a[0][0]
}
