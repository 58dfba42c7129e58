package spacing

import (
	"math"
	"testing"
)

// used of a capacity by a flow whose window is cut to .7 at each loss and grows by .53 segments a round trip: it loses one when it was beyond the
// capacity for n round trips, .53 (1 + 2 + ... n) segments.
func used(distance, capacity, trip float64) float64 {
	const segment, growth = 1448, .53
	beyond := math.Sqrt(2 * distance / segment * growth) // segments
	return .85 * (capacity + beyond*segment/trip)
}

// From a tenth of the right distance and from ten times as much, the loop finds what uses the capacity, within a minute.
func TestSettles(t *testing.T) {
	for _, capacity := range []float64{1.25e6, 12.5e6, 125e6} {
		for _, trip := range []float64{0.001, 0.01, 0.1} {
			if capacity*trip < 8*1448 {
				continue
			}
			right := math.Pow(.18*capacity*trip/1448, 2) / 2 / .53 * 1448
			if right > Most || right < 2*Least { // one loss in gigabytes; windows of few segments
				continue
			}
			for _, from := range []float64{.1, 1, 10} {
				distance, average := uint32(min(Most, max(Least, right*from))), capacity
				for range 6000 {
					passed := min(used(float64(distance), capacity, trip), 1.5*capacity)
					average += (passed - average) / 20
					distance = Next(distance, Slice{Offered: average, Passed: average, Capacity: capacity, Lost: true})
				}
				if use := used(float64(distance), capacity, trip) / capacity; use < .9 || use > 1.06 {
					t.Errorf("%.3g B/s, %.0f ms, from %.1f times the right distance: the capacity is used to %.3f", capacity, 1000*trip, from, use)
				}
			}
		}
	}
}

func TestStays(t *testing.T) {
	for _, c := range []Slice{{1e6, 1e6, 0, 0, true}, {9e5, 9e5, 0, 1e6, false}, {9e5, 9e5, 9e5, 1e6, false}, {0, 0, 0, 1e6, true}, {math.NaN(), 1, 0, 1e6, true}, {math.Inf(1), 1, 0, 1e6, true}} {
		if got := Next(100000, c); got != 100000 {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if got := Next(Least, Slice{1e9, 1e9, 0, 1e6, true}); got != Least {
		t.Errorf("%d is below %d", got, Least)
	}
	if got := Next(Most, Slice{1e6, 4e5, 0, 1e6, true}); got != Most {
		t.Errorf("%d is above %d", got, Most)
	}
}

// A step is as far as what is missing, or too much, is from what is allowed, and nothing where the capacity is used. A slice that losses keep nearly empty is
// let out as well.
func TestSteps(t *testing.T) {
	const old, capacity = 1_000_000, 1e6
	for use, want := range map[float64]uint32{.98: old, 1: old, 1.03: old, .93: 1_003_000, .5: 1_028_800, .01: 1_050_000, 1.13: 985_000, 1.3: 959_500, 1.4: 950_000, 2: 950_000} {
		if got := Next(old, Slice{use * capacity, use * capacity, .01 * capacity, capacity, true}); math.Abs(float64(got)-float64(want)) > 1 {
			t.Errorf("%.0f %% are used: %d, want %d", 100*use, got, want)
		}
	}
	for refused, want := range map[float64]uint32{.01 * capacity: 1_028_800, .011 * capacity: 980_000, capacity: 980_000} {
		if got := Next(old, Slice{2 * capacity, .5 * capacity, refused, capacity, true}); math.Abs(float64(got)-float64(want)) > 1 {
			t.Errorf("the ceiling refuses %.0f of %.0f: %d, want %d", refused, capacity, got, want)
		}
	}
}
