package reorder

import (
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// histogram of positive numbers, eight bins a power of two.
type histogram struct {
	bins  [512]float64
	total float64
}

const (
	binsPerOctave = 8
	firstOctave   = -34 // 2^-34 s is less than a nanosecond
)

func (h *histogram) add(x float64) {
	h.total++
	bin := 0
	if x > 0 {
		bin = min(max(int((math.Log2(x)-firstOctave)*binsPerOctave), 0), len(h.bins)-1)
	}
	h.bins[bin]++
}

// curve is the cumulated distribution: upper ends of the bins.
func (h *histogram) curve() (points []figure.Point) {
	sum := 0.0
	for n, count := range h.bins {
		if sum += count; sum > 0 && sum <= h.total && (count > 0 || len(points) == 0) {
			points = append(points, figure.Point{X: math.Exp2(firstOctave + float64(n+1)/binsPerOctave), Y: sum / h.total})
		}
	}
	return points
}

// at is the smallest upper end of a bin with that share of the numbers below it.
func (h *histogram) at(share float64) float64 {
	for _, p := range h.curve() {
		if p.Y >= share {
			return p.X
		}
	}
	return math.NaN()
}

// spread is what seeds made of a figure.
type spread struct{ mean, deviation float64 }

func spreadOf(values []float64) spread {
	var sum, squares float64
	for _, v := range values {
		sum, squares = sum+v, squares+v*v
	}
	n := float64(len(values))
	mean := sum / n
	return spread{mean, math.Sqrt(max(squares/n-mean*mean, 0) * n / max(n-1, 1))}
}

// String is a share with its standard deviation over seeds: 91 +- 2 %.
func (s spread) String() string {
	if math.IsNaN(s.mean) {
		return "-"
	}
	digits := 1
	if s.mean >= 0.1995 {
		digits = 0
	} else if s.mean < 0.00995 {
		digits = 2
	}
	return fmt.Sprintf("%.*f ± %.*f %%", digits, 100*s.mean, max(digits, 1), 100*s.deviation)
}
