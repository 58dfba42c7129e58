package fridge

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
)

// mostWindows is how many windows of rates are stored, for delays that are longer than a window.
const mostWindows = 64

// rates are the insertions into each fridge over time, from which the survival of a delay is predicted.
type rates struct {
	parts   []layout.Part // with the present probabilities
	windows []rateWindow  // the latest last
	again   []recurrence  // of each fridge
	again1  float64
}

func newRates(parts []layout.Part) *rates {
	return &rates{parts: parts, again: make([]recurrence, len(parts))}
}

// factor corrects the samples of fridge k.
func (r *rates) factor(k int) delay.Factor { return r.factorOf(r.parts, k) }

// factorOf corrects the samples of fridge k of a setting.
func (r *rates) factorOf(parts []layout.Part, k int) delay.Factor {
	f := parts[k].Factor()
	f.Repeats = r.again[k].repeats
	return f
}

type rateWindow struct {
	ns       float64
	inserted [layout.Most]float64
}

func appended(windows []rateWindow, ns int64, inserted []uint64) []rateWindow {
	w := rateWindow{ns: float64(max(ns, 1))}
	for k, n := range inserted {
		w.inserted[k] = float64(n)
	}
	if len(windows) == mostWindows {
		windows = append(windows[:0], windows[1:]...)
	}
	return append(windows, w)
}

// perNS is the rate of insertions into fridge k over the last t ns, or over the last window if that is longer.
func (r *rates) perNS(k int, t float64) float64 { return r.perNSBefore(k, t, len(r.windows)) }

// perNSBefore is that rate before window n.
func (r *rates) perNSBefore(k int, t float64, n int) float64 {
	ns, inserted := 0.0, 0.0
	for i := n - 1; i >= 0 && (ns < t || ns == 0); i-- {
		ns += r.windows[i].ns
		inserted += r.windows[i].inserted[k]
	}
	if ns == 0 {
		return 0
	}
	return inserted / ns
}

// survived predicts x, the insertions that a delay of t ns survives in a shard of fridge k.
func (r *rates) survived(k int, t float64) float64 {
	return r.perNS(k, t) * t / float64(r.parts[k].Shards)
}

// lives is a delay of t ns in lifetimes of fridge k: different requests inserted within it, over slots.
func (r *rates) lives(k int, t float64) float64 {
	different := r.again[k].repeats.Different(r.survived(k, t))
	return different * float64(r.parts[k].Shards) / float64(r.parts[k].Slots)
}

// included predicts the probability that a request with a delay of t ns becomes a sample of fridge k of a setting.
func (r *rates) included(parts []layout.Part, k int, t, over float64) float64 {
	return 1 / r.factorOf(parts, k).Weight(r.outlived(k, t, over))
}

// outlived predicts x where the setting of the request ended `over` ns before the end of the last window, at the start of a window: before that its record
// survived the insertions of earlier windows, which may have been many more.
func (r *rates) outlived(k int, t, over float64) float64 {
	n, ns := len(r.windows), 0.0
	for n > 0 && ns < 0.999*over {
		n--
		ns += r.windows[n].ns
	}
	if n == 0 || n == len(r.windows) {
		return r.survived(k, t)
	}
	last := r.windows[len(r.windows)-1].ns
	after := max(0, over-last)
	after = min(t, after+max(0, min(last, t-after))/2)
	return (r.perNS(k, after)*after + r.perNSBefore(k, t-after, n)*(t-after)) / float64(r.parts[k].Shards)
}

// lifetime of fridge k at the present rate, in ns.
func (r *rates) lifetime(k int) float64 {
	rate := r.perNS(k, 0)
	if rate == 0 {
		return math.Inf(1)
	}
	return float64(r.parts[k].Slots) / rate
}
