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
