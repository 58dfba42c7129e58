package ahab

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
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
			t.Errorf("%v: the table is from %d to %d", tau, table[0], table[1023])
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

// What does not fit together is refused, and at its edge it is not: a limit is at most 2^30 units.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want string
	}{
		{map[string]string{"tau": "1s", "capacity": "536870912bit"}, ""}, {map[string]string{"tau": "1s", "capacity": "536870920bit"}, "at most 999.99998"},
		{map[string]string{"tau": "500us", "epoch": "500us", "capacity": "800Gbit"}, ""}, {map[string]string{"capacity": "800001Mbit"}, "8kbit to 800Gbit"}, {map[string]string{"capacity": "8kbit"}, ""},
		{map[string]string{"capacity": "7999bit"}, "8kbit to 800Gbit"}, {map[string]string{"capacity": "fast"}, "no rate"}, {map[string]string{"capacity": "0"}, ""},
		{map[string]string{"columns": "1000"}, "powers of two"}, {map[string]string{"flows": "1000"}, "powers of two"}, {map[string]string{"columns": "1024", "flows": "1024"}, ""},
		{map[string]string{"form": "table", "update": "aimd"}, "interpolates"}, {map[string]string{"form": "table"}, ""}, {map[string]string{"form": "table", "epoch": "2ms"}, "2^20 ns"},
		{map[string]string{"epoch": "4ms", "tau": "4ms"}, ""}, {map[string]string{"epoch": "4001us", "tau": "4ms"}, "at most ahab.tau, 4ms"},
		{map[string]string{"fail": "hold"}, "set how long"}, {map[string]string{"fail": "hold", "hold": "10s"}, ""},
		{map[string]string{"config": "{", "capacity": "1Mbit"}, "one of the two"},
	} {
		v, err := algo.NewValues(Name, params, c.set)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newConfig(v, algo.Setup{}); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.set, err, c.want)
		}
	}
}

// A slice's byte counts by its share of the link, as a power of two between 2^8 and 2^24 of 2^-16.
func TestNorm(t *testing.T) {
	for share, want := range map[float64]uint32{1: 1 << 16, .5: 1 << 17, .25: 1 << 18, .36: 1 << 17, .35: 1 << 18, 1. / 256: 1 << 24, 1. / 1000: 1 << 24, 0: 1 << 24, 300: 1 << 8, 2: 1 << 15} {
		if got := normOf(share); got != want {
			t.Errorf("a share of %g: %d, want %d", share, got, want)
		}
	}
	c := &config{slices: []slice{{}, {norm: 1 << 20}, {}}}
	for n, want := range []uint32{1 << 16, 1 << 20, 1 << 16, 1 << 16} {
		if got := c.norm(n); got != want {
			t.Errorf("slice %d: %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int]uint32{1: 2, 2: 2, 3: 4, 4: 4, 5: 8, 9: 16} {
		c.slices = make([]slice, n)
		if got := c.entries(); got != want {
			t.Errorf("%d slices: %d entries, want %d", n, got, want)
		}
	}
}

// What a user is made of is given word by word: of a flow everything, of an address the bits in front.
func TestWordsOfUsers(t *testing.T) {
	const all = math.MaxUint32
	for user, want := range map[uint64]struct {
		name      string
		four, six []uint64
	}{
		membership(0, 0, userFlow, 32, 128):           {"flow", nil, nil},
		membership(0, 0, userSource, 32, 128):         {"source", []uint64{all}, []uint64{all, all, all, all}},
		membership(0, 0, userDestination, 8, 56):      {"destination", []uint64{0xff000000}, []uint64{all, 0xffffff00, 0, 0}},
		membership(9, 1023, userSource, 0, 0):         {"source", []uint64{0}, []uint64{0, 0, 0, 0}},
		membership(1, 1, userDestination, 31, 97):     {"destination", []uint64{all &^ 1}, []uint64{all, all, all, 1 << 31}},
		membership(0xffff, 1, userDestination, 1, 32): {"destination", []uint64{1 << 31}, []uint64{all, 0, 0, 0}},
	} {
		got, rules := &Rules{}, &Rules{}
		words(got, 5, user)
		rules.add("Ingress.ahab.users.words", want.name+"4", []Match{exact(5, 8), exact(1, 1)}, want.four...)
		rules.add("Ingress.ahab.users.words", want.name+"6", []Match{exact(5, 8), exact(0, 1)}, want.six...)
		if !reflect.DeepEqual(got, rules) {
			t.Errorf("%x: %+v, want %+v", user, got, rules)
		}
	}
}
