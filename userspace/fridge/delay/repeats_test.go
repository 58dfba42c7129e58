package delay

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRepeats: gaps that were found with the probability that their record survives give the number of different requests a
// run of occurrences holds. Every request is sent once to three times, with pauses of its own.
func TestRepeats(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	type occurrence struct {
		at float64
		id int
	}
	var all []occurrence
	const requests, slots = 40_000, 1024
	for id := range requests {
		at := rng.Float64() * requests
		for range 1 + id%3 {
			all = append(all, occurrence{at, id})
			at += slots * rng.ExpFloat64() / 2
		}
	}
	sortBy(all, func(o occurrence) float64 { return o.at })
	f := Factor{Slots: slots, Inclusion: 1}
	gaps := make([]Gap, RepeatBins.Len())
	for bin := range gaps {
		low, high := RepeatBins.Range(bin)
		gaps[bin].Others = float64(low+high-1) / 2
	}
	last := map[int]int{}
	for i, o := range all {
		if j, again := last[o.id]; again {
			if rng.Float64() < 1/f.Weight(float64(different(all[j+1:i], func(o occurrence) int { return o.id }))) {
				gaps[RepeatBins.Index(uint64(i-j-1))].Found++
			}
		}
		last[o.id] = i
	}
	r := NewRepeats(gaps, float64(len(all)), f)
	for _, x := range []int{1, 10, 100, 1000, 3000} {
		mean := 0.0
		const runs = 200
		for n := range runs {
			from := 5000 + n*(len(all)-20000)/runs
			mean += float64(different(all[from:from+x], func(o occurrence) int { return o.id })) / runs
		}
		if got := r.Different(float64(x)); math.Abs(got/mean-1) > 0.015 {
			t.Errorf("%d occurrences: %.1f different requests, in truth %.1f", x, got, mean)
		}
	}
	if off := r.Lost/(float64(len(all))-requests-r.Found) - 1; math.Abs(off) > 0.03 {
		t.Errorf("%.0f repetitions did not find their request, in truth %.0f", r.Lost, float64(len(all))-requests-r.Found)
	}
}

func sortBy[T any](list []T, key func(T) float64) {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

func different[T any](list []T, id func(T) int) int {
	seen := map[int]bool{}
	for _, o := range list {
		seen[id(o)] = true
	}
	return len(seen)
}

// TestRepeatsNone: without repetitions every occurrence is a request, also where nothing was ever counted.
func TestRepeatsNone(t *testing.T) {
	f := Factor{Slots: 16, Inclusion: 1}
	for _, r := range []*Repeats{nil, NewRepeats(nil, 0, f), NewRepeats([]Gap{{Others: 3}}, 10, f)} {
		if got := r.Different(7); got != 7 {
			t.Errorf("7 occurrences: %g different requests", got)
		}
	}
	// All of them mirrored: every second one is the same request again.
	if got := NewRepeats([]Gap{{Others: 0, Found: 50}}, 100, f).Different(9); got != 5 {
		t.Errorf("9 occurrences of mirrored requests: %g different ones, want 5", got)
	}
}
