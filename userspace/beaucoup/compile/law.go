package compile

import "math"

// The number of attributes of a key that raises an alert depends on the number of keys with fewer: of many keys with a tenth of a threshold
// some raise an alert by chance. A collector that needs d draws alerts if its key has d attributes, so the share of alerts with d draws is
// proportional to the probability of d draws times the share of keys with d attributes or more. Near a threshold that share is modelled as
// d^-a. The exponent a is estimated from the table: the number of collectors with half of the coupons for each one with all.

// law is the distribution of a collector's draws.
type law struct{ draws, chance []float64 }

// Weighted is the law weighted by d^-a and normalised: the distribution of the draws of alerts.
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

// Quantile is the number of draws that a share of collectors needs at most.
func (l law) Quantile(share float64) float64 {
	arrived := 0.0
	for n, c := range l.chance {
		if arrived += c; arrived >= share {
			return l.draws[n]
		}
	}
	return l.draws[len(l.draws)-1]
}

// Above is the share that needs more than d draws.
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
