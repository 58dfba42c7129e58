package beaucoup

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// law is the exact distribution of the draws that a collector takes.
type law struct {
	collector compile.Collector
	mean      float64
	chance    []float64 // of exactly so many draws
}

// newLaw follows the number of different coupons from draw to draw until all but tail of the probability has arrived.
func newLaw(c compile.Collector, tail float64) *law {
	l := &law{collector: c, chance: []float64{0}}
	have := make([]float64, c.N) // chance to have so many coupons, and not yet n
	have[0] = 1
	for left := 1.0; left > tail; {
		arrived := 0.0
		for k := c.N - 1; k >= 0; k-- {
			next := have[k] * c.P * float64(c.M-k)
			have[k] -= next
			if k == c.N-1 {
				arrived = next
			} else {
				have[k+1] += next
			}
		}
		left -= arrived
		l.mean += arrived * float64(len(l.chance))
		l.chance = append(l.chance, arrived)
	}
	return l
}

// err is the mean relative error against a threshold.
func (l *law) err(threshold float64) (sum float64) {
	for draws, chance := range l.chance {
		sum += chance * math.Abs(float64(draws)-threshold)
	}
	return sum / threshold
}

// spread is the standard deviation of |draws - threshold| / threshold: what one collector shows of the mean.
func (l *law) spread(threshold float64) float64 {
	square := 0.0
	for draws, chance := range l.chance {
		square += chance * (float64(draws) - threshold) * (float64(draws) - threshold)
	}
	mean := l.err(threshold)
	return math.Sqrt(square/threshold/threshold - mean*mean)
}

// deviation is the standard deviation of the draws.
func (l *law) deviation() float64 {
	square := 0.0
	for draws, chance := range l.chance {
		square += chance * (float64(draws) - l.mean) * (float64(draws) - l.mean)
	}
	return math.Sqrt(square)
}

// most is how many draws all but tail of the collectors take at most.
func (l *law) most(tail float64) int {
	left := 1.0
	for draws, chance := range l.chance {
		if left -= chance; left <= tail {
			return draws
		}
	}
	return len(l.chance)
}

// cc is CC(m, p, n) of lemma 4.3.1.
func cc(c compile.Collector) (sum float64) {
	for j := range c.N {
		sum += 1 / (c.P * float64(c.M-j))
	}
	return sum
}
