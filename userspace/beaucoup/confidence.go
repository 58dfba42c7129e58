package beaucoup

import (
	"math"
	"math/bits"
)

// How many attributes a key has that raises an alert depends on how many keys there are that have fewer: of many keys with a tenth of a
// threshold some come to it by luck. A collector that takes d draws alerts if its key has as many attributes, so of all alerts the
// share of those with d draws is as the chance of d draws times the share of keys with d attributes or more. Near a threshold that share is
// taken to fall as d^-a. How fast it does is seen in the table: how many collectors have half of the coupons for each that has all.

// steepest is the largest a: half the attributes, 250 times as many keys.
const steepest = 8

// law is the distribution of a collector's draws.
type law struct{ draws, chance []float64 }

func (c Collector) law() (l law) {
	c.arrivals(1e-6, func(draws, chance float64) {
		l.draws, l.chance = append(l.draws, draws), append(l.chance, chance)
	})
	return l
}

// weighted by d^-a: the draws of alerts, in shares that add up to 1.
func (l law) weighted(a float64) law {
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

// quantile is the draws that a share of collectors takes at most.
func (l law) quantile(share float64) float64 {
	arrived := 0.0
	for n, c := range l.chance {
		if arrived += c; arrived >= share {
			return l.draws[n]
		}
	}
	return l.draws[len(l.draws)-1]
}

// above is the share that takes more than d.
func (l law) above(d float64) (sum float64) {
	for n, c := range l.chance {
		if l.draws[n] > d {
			sum += c
		}
	}
	return sum
}

// half of the coupons for an alert.
func (c Collector) half() int { return max(1, (c.N+1)/2) }

// slope is the a at which half collectors have c.half() coupons where one has all.
func (c Collector) slope(half float64, all law) float64 {
	part := Collector{M: c.M, N: c.half(), P: c.P}.law()
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

// judge gives alerts their intervals and confidence.
func (i *estimator) judge(alerts []Alert) {
	said := map[*Compiled]verdict{}
	for n := range alerts {
		c := alerts[n].Query
		v, known := said[c]
		if !known {
			v = verdictOf(c, i.effective[c], i.have[c])
			said[c] = v
		}
		alerts[n].Low, alerts[n].High, alerts[n].Confidence = v.low, v.high, v.confidence
	}
}

type verdict struct{ low, high, confidence float64 }

// verdictOf the alerts of a query, of whose collectors so many have 0, 1, ... coupons.
func verdictOf(c *Compiled, e Collector, have [65]int) verdict {
	half, all := 0, 0
	for k, n := range have {
		if k >= e.half() {
			half += n
		}
		if k >= e.N {
			all += n
		}
	}
	plain := e.law()
	tilted := plain.weighted(e.slope(float64(half)/float64(max(1, all)), plain))
	return verdict{tilted.quantile(.025), plain.quantile(.975), tilted.above(float64(c.Threshold) / 2)}
}

// coupons counts the collectors of every query by their coupons.
func (i *instance) coupons() (have [MaxQueries][65]int, err error) {
	h := i.held
	if h.end, err = h.ends.Read(0, h.end); err != nil {
		return have, err
	}
	if h.key, err = h.keys.Read(0, h.key); err != nil {
		return have, err
	}
	if h.coupons, err = h.vectors.Read(0, h.coupons); err != nil {
		return have, err
	}
	if i.dated() {
		h.undate()
	}
	for slot, end := range h.end {
		if end != 0 {
			have[h.key[slot]&(MaxQueries-1)][bits.OnesCount64(h.coupons[slot])]++
		}
	}
	return have, nil
}
