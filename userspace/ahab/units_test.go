package ahab

import (
	"math"
	"testing"
	"time"
)

// Max-min: whoever wants less than the limit gets it, and what is given adds up to the capacity.
func TestMaxMin(t *testing.T) {
	for _, c := range []struct {
		rates    []float64
		capacity float64
		want     float64
	}{
		{[]float64{10, 20, 30, 40}, 100, math.Inf(1)},
		{[]float64{80, 10, 40, 20, 60, 30, 50, 70}, 100, 90. / 7},
		{[]float64{100, 100}, 100, 50},
		{nil, 100, math.Inf(1)},
	} {
		got := maxMin(c.rates, c.capacity)
		sum := 0.0
		for _, r := range c.rates {
			sum += min(r, got)
		}
		if math.Abs(got-c.want) > 1e-3 && got != c.want {
			t.Errorf("%v of %.0f: limit %.3f, want %.3f", c.rates, c.capacity, got, c.want)
		}
		if !math.IsInf(got, 1) && math.Abs(sum-c.capacity) > 1e-9 {
			t.Errorf("%v: %.3f of %.0f are given", c.rates, sum, c.capacity)
		}
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "8kbit": 1000, "100Mbit": 12_500_000, "2.5Gbit": 312_500_000, "8000bit": 1000} {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("%s: %d bytes a second, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "-1Mbit", "1000Gbit", "NaNbit", "7kbit", "100MBit", "Mbit", "1e3Gbit", "Infbit"} {
		if got, err := parseRate(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

// A filter that is fed at a rate reads it, whatever its time constant.
func TestDecay(t *testing.T) {
	for _, tau := range []time.Duration{500 * time.Microsecond, 4 * time.Millisecond, 100 * time.Millisecond, 10 * time.Second} {
		table, tick := decayTable(tau), math.Pow(2, float64(tickShift(tau)))
		if n := float64(tau) / tick; n < 32 || n > 64 {
			t.Errorf("%v has %.1f ticks", tau, n)
		}
		if table[0] != 65536 || table[1023] > 1 {
			t.Errorf("%v: the table goes from %d to %d", tau, table[0], table[1023])
		}
		value, x := uint64(0), 1e6*tick/float64(tau)
		for range 2000 {
			value = value*table[1]>>16 + uint64(x)
		}
		if got := float64(value) / 1e6; got < .97 || got > 1.03 {
			t.Errorf("%v: a filter fed at a rate of 1 reads %.3f", tau, got)
		}
	}
}

// The least of one draw from each list: {0, 1} twice is 1 in a quarter of cases.
func TestSmallest(t *testing.T) {
	mean, high := smallest([][]float64{{0, 1}, {0, 1}})
	if mean != .25 || high != 1 {
		t.Errorf("mean %.3f, 99th percentile %.3f; want 0.25 and 1", mean, high)
	}
	if mean, high = smallest([][]float64{{0, 0, 0}, {5, 6, 7}}); mean != 0 || high != 0 {
		t.Errorf("mean %.3f, 99th percentile %.3f of a row of zeros", mean, high)
	}
}

// Samples that found no room count for the next window's share: a ring that is full all the time would leave it at everything.
func TestShareAfter(t *testing.T) {
	for _, c := range []struct{ share, arrived, lost, want uint64 }{
		{allSamples, 2000, 0, allSamples}, {allSamples, 2000, 198_000, allSamples / 10}, {allSamples / 10, 20_000, 0, allSamples / 10}, {allSamples / 10, 200, 0, allSamples},
		{1, 1 << 40, 0, 1}, {allSamples, 0, 0, allSamples},
	} {
		if got := shareAfter(c.share, c.arrived+c.lost); got != c.want {
			t.Errorf("a share of %d, %d samples and %d that were lost: %d next, want %d", c.share, c.arrived, c.lost, got, c.want)
		}
	}
}
