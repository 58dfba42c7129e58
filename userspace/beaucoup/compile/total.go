package compile

import (
	"math"
	"math/bits"
)

// Collecting continues after an alert, so a collector's coupons at any later time show how many attributes there were. All m of them are soon
// collected: with n = 0.75 m at 2.5 times the threshold. A tail is TailCoupons rarer ones of the same key. Each is drawn with a coupon of the
// collector, by other bits of the attribute's hash, with one of tailLevels probabilities that fall by factors of two. Where most of a level
// are collected the next one shows more, so the relative error is the same over a factor of more than 100. This is a bitmap of several resolutions (Estan,
// Varghese, Fisk: "Bitmap algorithms for counting active flows on high speed links", IMC 2003), read by its likelihood.

// TailCoupons and tailLevels are TAILS and TAIL_LEVELS of bpf/beaucoup/beaucoup.bpf.c.
const (
	TailCoupons = 48
	tailLevels  = 8
)

// TailShare is the part of the coupons that draw from the tail.
var TailShare = func() (sum float64) {
	for c := range TailCoupons {
		sum += tailShare(c)
	}
	return sum
}()

// tailShare is the part of a collector's coupons that draw coupon c of its tail.
func tailShare(c int) float64 { return math.Ldexp(1./TailCoupons, -1-c%tailLevels) }

// Totals are what a collector's coupons, and those of its tail, show of the number of distinct attributes.
type Totals struct {
	c     Collector
	count []float64   // numbers of attributes, ascending by gridStep
	base  [][]float64 // base[k][i] is the logarithm of the probability of k coupons with count[i] attributes
}

const (
	gridStep = 0.02 // of the logarithm
	// fullAt is the mean number of draws of a coupon at which practically all collectors have it.
	fullAt     = 15.0
	exactSteps = 8000 // of the recursion; collectors that need more are scaled, as in arrivals
	margin     = 1.92 // half of the 95 % quantile of chi-square: logarithms of likelihoods within it are not distinguished
)

// NewTotals prepares the estimates of a collector; P is the probability after ties.
func NewTotals(c Collector) *Totals {
	t := &Totals{c: c, base: make([][]float64, c.M+1)}
	most := fullAt / (c.P * float64(c.M) * tailShare(tailLevels-1))
	for x := 0.0; x <= math.Log(most); x += gridStep {
		t.count = append(t.count, math.Exp(x))
	}
	for k := range t.base {
		t.base[k] = make([]float64, len(t.count))
	}
	t.occupy()
	return t
}

// occupy follows the distribution of the number of different coupons from draw to draw, and takes that of independent coupons when nearly
// all are collected.
func (t *Totals) occupy() {
	m, p, scale := t.c.M, t.c.P, 1.0
	for fullAt/p > exactSteps && 2*p*float64(m) <= 1 {
		p, scale = 2*p, 2*scale
	}
	have := make([]float64, m+1)
	have[0] = 1
	draw := 0.0
	for i, count := range t.count {
		at := math.Round(count / scale)
		if at*p > fullAt {
			t.independent(i)
			continue
		}
		for ; draw < at; draw++ {
			for k := m; k >= 0; k-- {
				have[k] *= 1 - p*float64(m-k)
				if k > 0 {
					have[k] += have[k-1] * p * float64(m-k+1)
				}
			}
		}
		for k := range have {
			t.base[k][i] = math.Log(max(have[k], 1e-300))
		}
	}
}

// independent coupons: each is collected but for e^-(P count).
func (t *Totals) independent(i int) {
	without := t.c.P * t.count[i]
	for k := range t.base {
		t.base[k][i] = float64(k)*math.Log1p(-math.Exp(-without)) - float64(t.c.M-k)*without
	}
}

// likelihoods are logarithms for each count, of k coupons and of a tail.
func (t *Totals) likelihoods(k int, tail uint64, tailed bool) []float64 {
	all := make([]float64, len(t.count))
	copy(all, t.base[min(k, t.c.M)])
	if !tailed {
		return all
	}
	var have [tailLevels]int
	var levels [tailLevels]int
	for c := range TailCoupons {
		levels[c%tailLevels]++
		have[c%tailLevels] += int(tail >> c & 1)
	}
	for i, count := range t.count {
		for level, total := range levels {
			draws := count * t.c.P * float64(t.c.M) * tailShare(level)
			all[i] += float64(have[level])*math.Log(-math.Expm1(-draws)) - float64(total-have[level])*draws
		}
	}
	return all
}

// At estimates the number of distinct attributes of a collector with k coupons and a tail. slope is the exponent a with which keys get fewer
// with their size (Slope), by which the lower end of the 95 % interval is weighted. The upper end takes every count to be as likely as another, the lower end
// every order of magnitude: where few coupons decide, these are the ends that hold (Garwood's for a single level). value and high
// are NaN where everything is collected: then there is a lower bound alone.
func (t *Totals) At(k int, tail uint64, tailed bool, slope float64) (value, low, high float64) {
	likelihood := t.likelihoods(k, tail, tailed)
	most, last := math.Inf(-1), likelihood[len(likelihood)-1]
	for _, l := range likelihood {
		most = max(most, l)
	}
	if k >= t.c.M && (!tailed || bits.OnesCount64(tail&(1<<TailCoupons-1)) == TailCoupons) || last > most-2*margin {
		for i, l := range likelihood {
			if l >= most-margin {
				return math.NaN(), t.count[i], math.NaN()
			}
		}
	}
	weight := make([]float64, len(likelihood))
	for i, l := range likelihood {
		weight[i] = math.Exp(l - most)
	}
	value = t.quantile(weight, .5)
	return value, t.quantile(t.weighted(weight, -slope), .025), t.quantile(t.weighted(weight, 1), .975)
}

// weighted by a power of the counts.
func (t *Totals) weighted(weight []float64, power float64) []float64 {
	list := make([]float64, len(weight))
	for i, w := range weight {
		list[i] = w * math.Pow(t.count[i], power)
	}
	return list
}

// quantile of the counts by their weights.
func (t *Totals) quantile(weight []float64, share float64) float64 {
	sum := 0.0
	for _, w := range weight {
		sum += w
	}
	reached := 0.0
	for i, w := range weight {
		if reached += w; reached >= share*sum {
			return t.count[i]
		}
	}
	return t.count[len(t.count)-1]
}
