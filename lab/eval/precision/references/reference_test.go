package references

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// TestReferences: Space-Saving never underestimates, with room it is exact, and both name large flows.
func TestReferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	truth := map[heavy.Key]float64{}
	ss, room := NewSpaceSaving(64), NewRAP(4096, rng.Float64)
	rap := NewSetRAP(128, 2, func(k heavy.Key) uint64 { return k[0] * 0x9e3779b97f4a7c15 >> 20 }, rng.Float64)
	for range 50000 {
		key := heavy.Key{1 + uint64(math.Exp(rng.Float64()*7))}
		truth[key]++
		ss.Add(key)
		room.Add(key)
		rap.Add(key)
	}
	for key, n := range ss.Counts() {
		if n < truth[key] {
			t.Errorf("Space-Saving: %v of %v", n, truth[key])
		}
	}
	for key, n := range room.Counts() {
		if n != truth[key] {
			t.Errorf("with room for all: %v of %v", n, truth[key])
		}
	}
	if r := heavy.Recall(truth, heavy.Top(rap.Counts(), 16), 16); r < .8 {
		t.Errorf("RAP in rows of two finds %.2f of the 16 largest", r)
	}
	if r := heavy.Recall(truth, heavy.Top(ss.Counts(), 16), 16); r < .7 {
		t.Errorf("Space-Saving finds %.2f of the 16 largest", r)
	}
}

// TestMST: with room for all prefixes the hierarchy is exact, and a drawn level is right on average.
func TestMST(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	mst, rhhh := NewMST(4096), NewRHHH(4096, func() int { return rng.IntN(4) })
	for i := range 40000 {
		src := netip.AddrFrom4([4]byte{10, byte(i % 4), 1, byte(i % 100)})
		mst.Add(src)
		rhhh.Add(src)
	}
	p := heavy.Prefix{Src: netip.MustParsePrefix("10.1.0.0/16")}
	if n := mst.Counts()[p]; n != 10000 {
		t.Errorf("MST: %v packets of %v, want 10000", n, p)
	}
	if n := rhhh.Counts()[p]; math.Abs(n-10000) > 5*math.Sqrt(3*10000) {
		t.Errorf("RHHH: %v packets of %v, want about 10000", n, p)
	}
}

// TestWhole: with room every prefix is exact, and without it a prefix is right on average.
func TestWhole(t *testing.T) {
	p := heavy.Prefix{Src: netip.MustParsePrefix("10.1.0.0/17")}
	for _, c := range []struct {
		entries, ways int
		most          float64
	}{{4096, 4, 0}, {64, 1, 3}, {64, 4, 3}} {
		var off []float64
		for seed := range uint64(30) {
			w := NewWhole(c.entries, c.ways, seed)
			for i := range 20000 {
				w.Add(netip.AddrFrom4([4]byte{10, byte(i % 4), 1, byte(i % 100)}))
			}
			off = append(off, w.Counts(1)[p]-5000)
		}
		sum, squares := 0.0, 0.0
		for _, x := range off {
			sum, squares = sum+x, squares+x*x
		}
		if math.Abs(sum) > c.most*math.Sqrt(squares) || c.most > 0 && squares == 0 {
			t.Errorf("%d entries, %d ways: off by %v", c.entries, c.ways, off)
		}
	}
}
