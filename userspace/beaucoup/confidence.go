package beaucoup

import (
	"math/bits"

	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// judge gives alerts their intervals and confidence.
func (i *estimator) judge(alerts []Alert) {
	verdicts := map[*compile.Compiled]verdict{}
	for n := range alerts {
		c := alerts[n].Query
		v, known := verdicts[c]
		if !known {
			v = verdictOf(c, i.effective[c], i.have[c])
			verdicts[c] = v
		}
		alerts[n].Low, alerts[n].High, alerts[n].Confidence = v.low, v.high, v.confidence
	}
}

type verdict struct{ low, high, confidence float64 }

// verdictOf the alerts of a query; have is the number of its collectors with 0, 1, ... coupons.
func verdictOf(c *compile.Compiled, e compile.Collector, have [65]int) verdict {
	plain := e.Law()
	tilted := plain.Weighted(e.Fewer(have))
	return verdict{tilted.Quantile(.025), plain.Quantile(.975), tilted.Above(float64(c.Threshold) / 2)}
}

// coupons counts the collectors of every query by their coupons.
func (i *instance) coupons() (have [compile.MaxQueries][65]int, err error) {
	for _, u := range i.units {
		if err := u.read(i.dated()); err != nil {
			return have, err
		}
		for slot, end := range u.end {
			if end != 0 {
				have[u.key[slot]&(compile.MaxQueries-1)][bits.OnesCount64(u.coupons[slot])]++
			}
		}
	}
	return have, nil
}
