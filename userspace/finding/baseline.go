package finding

import (
	"math"
	"slices"
	"time"
)

// A baseline is a stream's own past: the values of its latest windows, and of windows at the same hour of the week.
const (
	// latestWindows are remembered; fewest must be there before anything is expected of them.
	latestWindows = 120
	fewest        = 5
	// hourly values are kept of each of the 168 hours of a week; enough of them, of hours that lie daysApart or more apart, are expected.
	hourly    = 12
	daysApart = 6 * 24 * time.Hour
	hours     = 7 * 24
	// Smallest scatter that is believed between windows: of logarithms, and of what adds.
	leastRatio = .08
	leastShare = .002
	// few windows know their own scatter badly: of five normal ones the median absolute deviation is below half of the truth in one case of
	// ten. So it is taken 1 + few/n times: 1.4 with five windows, 1.02 with all.
	few = 2
)

// Baseline is exported for the store, which keeps MarshalBaseline's form.
type Baseline struct {
	Latest []float32     // the newest last
	Hours  map[int]*Hour // hour of the week (UTC, Monday 0) -> values
}

// Hour is the past of one hour of the week.
type Hour struct {
	Values []float32
	First  int64 // ns since 1970, of the oldest value
	Last   int64 // ... of the newest
}

// every is the least time between two values of an hour, so that they are not all of one minute.
const every = 4 * time.Minute

// Learn takes a window's value. At is ns since 1970; windows whose time is not known teach nothing of hours.
func (b *Baseline) Learn(value float64, at int64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	b.Latest = append(b.Latest, float32(value))
	if extra := len(b.Latest) - latestWindows; extra > 0 {
		b.Latest = slices.Delete(b.Latest, 0, extra)
	}
	if at < unix2000 {
		return
	}
	if b.Hours == nil {
		b.Hours = map[int]*Hour{}
	}
	h := b.Hours[hourOf(at)]
	if h == nil {
		h = &Hour{First: at}
		b.Hours[hourOf(at)] = h
	}
	if h.Last != 0 && at-h.Last < int64(every) {
		return
	}
	h.Values = append(h.Values, float32(value))
	h.Last = at
	if extra := len(h.Values) - 2*hourly; extra > 0 {
		h.Values = slices.Delete(h.Values, 0, extra)
	}
}

func hourOf(at int64) int {
	t := time.Unix(0, at).UTC()
	return (int(t.Weekday())+6)%7*24 + t.Hour()
}

// Usual is what the past lets expect: the median, and the scatter of windows around it (1.4826 times the median absolute deviation, so
// that single bad windows move neither). Scatter is of logarithms where deviations multiply. ok is false with too little past.
type Usual struct {
	Median, Scatter float64
	Most            float64 // the largest
	Windows         int
	Weekly          bool // of the same hour of earlier weeks
}

// Usual at a time.
func (b *Baseline) Usual(at int64, ratio bool) (Usual, bool) {
	if at >= unix2000 {
		if h := b.Hours[hourOf(at)]; h != nil && len(h.Values) >= hourly && h.Last-h.First >= int64(daysApart) {
			u := usual(h.Values, ratio)
			u.Weekly = true
			if l := usual(b.Latest, ratio); len(b.Latest) >= fewest && l.Median > u.Median { // a change that stays is no news a week later
				u.Median = l.Median
				u.Scatter = max(u.Scatter, l.Scatter)
			}
			return u, true
		}
	}
	if len(b.Latest) < fewest {
		return Usual{}, false
	}
	return usual(b.Latest, ratio), true
}

func usual(values []float32, ratio bool) Usual {
	if len(values) == 0 {
		return Usual{Median: math.NaN()}
	}
	n := len(values)
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	at := func(i int) float64 {
		if !ratio {
			return float64(sorted[i])
		}
		return math.Log(max(float64(sorted[i]), 1e-12))
	}
	u := Usual{Median: (at((n-1)/2) + at(n/2)) / 2, Most: float64(sorted[n-1]), Windows: n}
	deviation := deviations(at, n, u.Median)
	// A median of few windows is itself uncertain: 1.25 scatters over the root of their number.
	u.Scatter = 1.4826 * deviation * (1 + few/float64(n)) * math.Sqrt(1+1.57/float64(n))
	if ratio {
		u.Median = math.Exp(u.Median)
	}
	return u
}

// deviations is the median absolute deviation of sorted values: those next to the median are merged from both sides up to the middle.
func deviations(at func(int) float64, n int, median float64) float64 {
	below, above := (n-1)/2, (n-1)/2+1
	next := func(i int) float64 {
		if i < 0 || i >= n {
			return math.Inf(1)
		}
		return math.Abs(at(i) - median)
	}
	low, high, last := next(below), next(above), 0.
	for taken := 0; ; taken++ {
		var d float64
		if low <= high {
			d, below = low, below-1
			low = next(below)
		} else {
			d, above = high, above+1
			high = next(above)
		}
		if taken == n/2 {
			if n%2 == 0 {
				return (last + d) / 2
			}
			return d
		}
		last = d
	}
}

// Compare returns how far a measure lies from what is usual of its stream: whether their intervals are apart and the difference is large enough
// to matter, and by how many standard deviations.
func (u Usual) Compare(m *Measure) (e Expected, apart bool, deviation float64) {
	v := m.Value
	u.Scatter = max(u.Scatter, m.leastScatter()*math.Sqrt(1+1.57/float64(max(1, u.Windows))))
	e = Expected{Source: FromBaseline}
	e.Value, e.Unit = u.Median, v.Unit
	width := (v.High - v.Low) / 2 / 1.96
	var sd, far float64
	if m.Ratio {
		e.Low, e.High = u.Median*math.Exp(-1.96*u.Scatter), u.Median*math.Exp(1.96*u.Scatter)
		width = math.Log(max(v.High, 1e-12)/max(v.Low, 1e-12)) / 2 / 1.96
		sd, far = math.Hypot(u.Scatter, orZero(width)), math.Log(max(v.Value, 1e-12)/max(u.Median, 1e-12))
	} else {
		far = v.Value - u.Median
		sd = math.Hypot(u.Scatter, orZero(width))
		if m.Trials > 0 {
			sd = max(u.Scatter, u.binomial(m)) // scatter between windows holds that of counts
		}
		e.Low, e.High = u.Median-1.96*u.Scatter, u.Median+1.96*u.Scatter
		if v.Unit == "ratio" {
			e.Low, e.High = max(0, e.Low), min(1, e.High)
		}
	}
	low, high := v.Low, v.High
	if math.IsNaN(low) {
		low = v.Value
	}
	if math.IsNaN(high) {
		high = v.Value
	}
	if m.Lower {
		far = -far
		apart = high < e.Low && u.Median-v.Value >= m.Delta && (m.Factor == 0 || v.Value*m.Factor <= u.Median)
	} else {
		apart = low > e.High && v.Value-u.Median >= m.Delta && (m.Factor == 0 || v.Value >= m.Factor*u.Median)
	}
	deviation = far / sd
	multiplies := m.Ratio || m.Factor > 1 && m.Trials == 0 // counts and shares of a total, which must multiply to matter; of few trials chance makes large shares
	if multiplies && !m.Lower && !m.Thin && apart && u.Windows >= fewestBeyond && low > beyond*u.Most {
		deviation = max(deviation, clip) // nothing of the past was near it, whatever its scatter is
	}
	return e, apart, deviation
}

// beyond is how many times the largest value of fewestBeyond windows or more a window has whose deviation is as large as counts.
const (
	beyond       = 2
	fewestBeyond = 7
)

// leastScatter is the smallest that is believed of a measure.
func (m *Measure) leastScatter() float64 {
	switch {
	case m.Scatter > 0:
		return m.Scatter
	case m.Ratio:
		return leastRatio
	}
	return leastShare
}

// binomial is the standard deviation of a share that its distance from the usual one has by the likelihood ratio of binomial counts: next to 0 and 1
// the normal one is far from the truth. Where the past has no events, half of one is taken.
func (u Usual) binomial(m *Measure) float64 {
	n := m.Trials
	least := .5 / (n*float64(max(1, u.Windows)) + 1)
	p, x := min(1-least, max(least, u.Median)), min(1, max(0, m.Value.Value))
	term := func(x, p float64) float64 {
		if x <= 0 {
			return 0
		}
		return x * math.Log(x/p)
	}
	deviance := 2 * n * (term(x, p) + term(1-x, 1-p))
	if !(deviance > 0) {
		return math.Sqrt(p * (1 - p) / n)
	}
	return math.Abs(x-u.Median) / math.Sqrt(deviance)
}

func orZero(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
