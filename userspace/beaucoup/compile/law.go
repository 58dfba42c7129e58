package compile

import "math"

// How many attributes a key has that raises an alert depends on how many keys there are that have fewer: of many keys with a tenth of a
// threshold some come to it by luck. A collector that takes d draws alerts if its key has as many attributes, so of all alerts the
// share of those with d draws is as the chance of d draws times the share of keys with d attributes or more. Near a threshold that share is
// taken to fall as d^-a. How fast it does is seen in the table: how many collectors have half of the coupons for each that has all.

// law is the distribution of a collector's draws.
type law struct{ draws, chance []float64 }

// Weighted by d^-a: the draws of alerts, in shares that add up to 1.
func (l law) Weighted(a float64) law {
	w, sum := law{l.draws, make([]float64, len(l.chance))}, 0.0
	for n, d := range l.draws {
		w.chance[n] = l.chance[n] * math.Pow(d/l.draws[0], -a)
		sum += w.chance[n]
	}
	for n := range w.chance {
		w.chance[n] /= sum
	}
	return w
}

// mean of d^-a.
func (l law) mean(a float64) (sum float64) {
	for n, d := range l.draws {
		sum += l.chance[n] * math.Pow(d, -a)
	}
	return sum
}

// Quantile is the draws that a share of collectors takes at most.
func (l law) Quantile(share float64) float64 {
	arrived := 0.0
	for n, c := range l.chance {
		if arrived += c; arrived >= share {
			return l.draws[n]
		}
	}
	return l.draws[len(l.draws)-1]
}

// Above is the share that takes more than d.
func (l law) Above(d float64) (sum float64) {
	for n, c := range l.chance {
		if l.draws[n] > d {
			sum += c
		}
	}
	return sum
}

// steepest is the largest a: half the attributes, 250 times as many keys.
const steepest = 8
