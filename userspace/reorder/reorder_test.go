package reorder

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

func configured(t *testing.T, set map[string]string) *config {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfig(v, algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPrefixesSurviveTheWord(t *testing.T) {
	c := configured(t, map[string]string{"prefix": "20", "prefix6": "40"})
	for address, want := range map[string]string{
		"10.1.255.7": "10.1.240.0/20", "255.255.255.255": "255.255.240.0/20",
		"2001:db8:12ff::1": "2001:db8:1200::/40", "ff02::1": "ff02::/40",
	} {
		if got := c.unpack(c.pack(netip.MustParseAddr(address))).String(); got != want {
			t.Errorf("%s is in %s, want %s", address, got, want)
		}
	}
}

func TestBucketsAreDivided(t *testing.T) {
	for method, want := range map[string][2]int{"sampling": {0, 1000}, "precision": {500, 0}, "hybrid": {150, 700}} {
		c := configured(t, map[string]string{"method": method, "buckets": "1000", "x": "0.3"})
		if got := [2]int{c.wayBuckets, c.array}; got != want {
			t.Errorf("%s: %d buckets a way and %d in the array, want %v", method, got[0], got[1], want)
		}
	}
}

func TestImpossibleParameters(t *testing.T) {
	for _, c := range []struct {
		set      map[string]string
		env      algo.Setup
		contains string
	}{
		{map[string]string{"method": "hybrid", "buckets": "8", "x": "0.1"}, algo.Setup{}, "raise reorder.buckets"},
		{map[string]string{"ring": "5000"}, algo.Setup{}, "powers of two"},
		{map[string]string{"method": "precision", "ways": "3"}, algo.Setup{Hash: algo.HashCRC}, "1 or 2"},
		{map[string]string{"method": "hybrid", "ways": "5"}, algo.Setup{}, "1 to 4"},
	} {
		v, err := algo.NewValues(Name, params, c.set)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newConfig(v, c.env); err == nil || !strings.Contains(err.Error(), c.contains) {
			t.Errorf("%v: error %v, want one that contains %q", c.set, err, c.contains)
		}
	}
}

// Section 3.2.1 and 3.2.3: what is put out.
func TestDecisions(t *testing.T) {
	for _, c := range []struct {
		report string
		n, o   uint64
		want   bool
	}{
		{"reorder", 16, 1, true}, {"reorder", 15, 1, false}, {"reorder", 100, 0, false},
		{"all", 1000, 5, false}, {"all", 1000, 6, true}, {"all", 15, 15, false},
	} {
		tally := newTally(configured(t, map[string]string{"report": c.report}))
		tally.add(flow{prefix: 1, signature: 1}, sum{n: c.n - c.n/2, o: c.o})
		tally.add(flow{prefix: 1, signature: 2}, sum{n: c.n / 2})
		if _, got := tally.output()[1]; got != c.want {
			t.Errorf("report=%s, %d of %d out of order: put out %v, want %v", c.report, c.o, c.n, got, c.want)
		}
	}
}

func TestMixedRecordsAreDropped(t *testing.T) {
	recordOf := configured(t, map[string]string{"R": "2"}).recordOf
	id, prefix, seq, count := uint64(0xabcd1234)<<32, uint64(0x1234)<<48|0x0a010200, uint64(0x34)<<56|2<<32|77, uint64(0xab>>1)<<25|1<<24|9
	r, ok := recordOf(id, prefix, seq, count)
	if !ok || r.n != 9 || r.o != 2 || r.prefix != 0x0a010200 || r.signature != 0xabcd1234 {
		t.Errorf("record read as %+v, %v", r, ok)
	}
	for name, words := range map[string][4]uint64{
		"prefix": {id, prefix ^ 1<<50, seq, count}, "number": {id, prefix, seq ^ 1<<60, count}, "count": {id, prefix, seq, count ^ 1<<25},
		"end": {id, prefix, seq, count ^ 1<<24}, "reordering": {id, prefix, seq - 1<<32, count},
	} {
		if _, ok := recordOf(words[0], words[1], words[2], words[3]); ok {
			t.Errorf("a record with another flow's %s is taken for whole", name)
		}
	}
	if r, ok := recordOf(0, prefix, seq, count); !ok || r.n != 0 {
		t.Errorf("an empty record is %+v, %v", r, ok)
	}
}

func TestPlan(t *testing.T) {
	v, err := algo.NewValues(Name, params, nil)
	if err != nil {
		t.Fatal(err)
	}
	for memory, want := range map[int64]string{1 << 10: "sampling", 64 << 10: "hybrid", 4 << 20: "hybrid"} {
		b, err := descriptor().Plan(v, algo.PlanArgs{RatePerSecond: 275e3, MemoryBytes: memory})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Values[0].Value; got != want {
			t.Errorf("%d bytes: method %v, want %s", memory, got, want)
		}
	}
	for _, bad := range []algo.PlanArgs{{MemoryBytes: 1 << 20}, {RatePerSecond: 1, MemoryBytes: 10},
		{RatePerSecond: 1, MemoryBytes: 1 << 20, Extra: map[string]string{"flows": "1"}}} {
		if _, err := descriptor().Plan(v, bad); err == nil {
			t.Errorf("a plan for %+v is made", bad)
		}
	}
}

// Prefixes that cover 0 to a limit hold these numbers and no others: the twin's table compares by them.
func TestCover(t *testing.T) {
	for _, limit := range []uint32{0, 1, 16, 17, 255, 1<<24 - 2, 1<<24 - 1} {
		for _, n := range []uint32{0, 1, 15, 16, 17, 18, 254, 255, 256, 1<<23 + 5, 1<<24 - 2, 1<<24 - 1} {
			in := 0
			for _, c := range cover(limit) {
				if n&c[1] == c[0] {
					in++
				}
			}
			if (in == 1) != (n <= limit) || in > 1 {
				t.Errorf("%d is in %d of the prefixes of 0 to %d", n, in, limit)
			}
		}
	}
}
