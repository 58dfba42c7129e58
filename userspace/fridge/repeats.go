package fridge

import "github.com/xdpmon/xdpmon/userspace/fridge/delay"

// recurrence is how often requests are repeated, for one fridge. Each window counts half of the next one, so that a window with
// few requests, or none, still has an estimate.
type recurrence struct {
	found   float64 // of this window
	repeats *delay.Repeats
}

const remembered = 0.5

// repeat estimates the repetitions from a window together with those before it. others converts the centre of a bin to a number of
// occurrences of other requests.
func (r *rates) repeat(found []uint64, p *past, waiting, matched uint64, others func(k int, centre float64) float64) {
	n := delay.RepeatBins.Len()
	gaps := make([]delay.Gap, n)
	for k := range r.parts {
		a := &r.again[k]
		a.found = 0
		for bin := range n {
			low, high := delay.RepeatBins.Range(bin)
			a.found += float64(found[k*n+bin])
			gaps[bin] = delay.Gap{Found: p.gaps[k*n+bin], Others: others(k, float64(low+high-1)/2)}
		}
		a.repeats = delay.NewRepeats(gaps, p.occurrences[k], r.parts[k].Factor())
	}
	r.again1 = r.answeredAgain(waiting, matched)
}

// answeredAgain is the share of a window's answers whose request was repeated afterwards.
func (r *rates) answeredAgain(waiting, matched uint64) float64 {
	found, all := 0.0, 0.0
	for k := range r.again {
		if a := &r.again[k]; a.found > 0 {
			found += a.found
			all += a.found * (1 + a.repeats.Lost/a.repeats.Found)
		}
	}
	if found == 0 || matched == 0 {
		return 0
	}
	return max(0, found-float64(waiting)) * all / found / float64(matched)
}

// gap converts the numbers that the data plane bins to occurrences of other requests: the insertions between two of the same
// request, less the last; with an inferred counter, the elapsed time times the rate.
func (e *estimator) gap() func(k int, centre float64) float64 {
	if e.recorded {
		return func(_ int, centre float64) float64 { return max(0, centre-1) }
	}
	return func(k int, centre float64) float64 { return e.rates.survived(k, centre*float64(e.tick)) }
}

// cluster is how many responses share the sampling decision of one id, by mean size weighted by size: requests that are repeated
// after their answer, and answered again, have the same hash and so the same coin. A share r of the answers has a successor; if
// that were equally likely for all, the size would be 1 + 2r/(1-r). TSvals of real traffic scatter more: 2.42 at r = 0.28
// (composite_120s.pcap).
func (r *rates) cluster() float64 {
	r1 := min(0.95, r.again1)
	admitted := 0.0
	for _, p := range r.parts {
		admitted += p.Inclusion()
	}
	return 1 + 3*r1/(1-r1)*(1-admitted)
}

// lostRepeats estimates how many repetitions of this window found the record of their request overwritten.
func (r *rates) lostRepeats() float64 {
	lost := 0.0
	for k := range r.again {
		if a := &r.again[k]; a.found > 0 {
			lost += a.found * a.repeats.Lost / a.repeats.Found / r.parts[k].Inclusion()
		}
	}
	return lost
}
