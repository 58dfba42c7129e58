package traffic

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

type flow struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
}

func flowOf(p *packet.Packet) flow { return flow{p.Src, p.Dst, p.SrcPort, p.DstPort} }

func TestZipfCountsAndShares(t *testing.T) {
	const packets = 1_000_000
	z, err := NewZipf(ZipfOptions{Packets: packets, Flows: 20000, Skew: 1.1, Offset: 2, V6: 0.25, Seed: testutil.Seed(t)})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[flow]uint64{}
	next := map[flow]uint32{}
	var p packet.Packet
	var last int64
	for z.Next(&p) {
		k := flowOf(&p)
		if want, ok := next[k]; ok && want != p.Seq {
			t.Fatalf("flow %v jumps to sequence number %d, want %d", k, p.Seq, want)
		}
		if p.Time < last {
			t.Fatalf("time decreases from %d to %d", last, p.Time)
		}
		last = p.Time
		next[k] = p.Seq + p.Payload
		seen[k]++
	}
	v6 := 0
	for rank, n := range z.Counts() {
		key := z.Flow(rank)
		if got := seen[flowOf(&key)]; got != n {
			t.Fatalf("flow %d: %d packets seen, %d counted", rank, got, n)
		}
		if key.Src.Is6() {
			v6++
		}
	}
	near(t, "share of IPv6 flows", float64(v6)/20000, 0.25, 0.1)
	near(t, "duration (s)", float64(last-Start)/1e9, 1, 0.02)
	near(t, "share of the first flow to that of the tenth", z.Share(0)/z.Share(9), math.Pow(12.0/3, 1.1), 1e-9)
	checkShares(t, z, packets)
}

// checkShares: each of the largest flows is within five deviations of its share.
func checkShares(t *testing.T, z *Zipf, packets float64) {
	t.Helper()
	for rank := range 100 {
		want := z.Share(rank) * packets
		if got := float64(z.Counts()[rank]); math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("flow %d has %g packets, want %g", rank, got, want)
		}
	}
}

func TestFlowsAreDifferent(t *testing.T) {
	for _, prefixes := range []int{1, 7, 256} {
		z, err := NewZipf(ZipfOptions{Flows: 100000, Prefixes: prefixes, V6: 0.5, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[flow]bool{}
		nets := map[netip.Prefix]bool{}
		for rank := range 100000 {
			p := z.Flow(rank)
			k := flowOf(&p)
			k.dst = netip.Addr{} // the source alone is unique
			seen[k] = true
			bits := 24
			if p.Src.Is6() {
				bits = 64
			}
			net, _ := p.Src.Prefix(bits)
			nets[net] = true
		}
		if len(seen) != 100000 {
			t.Errorf("%d of 100000 flows differ", len(seen))
		}
		if len(nets) != 2*prefixes {
			t.Errorf("%d networks, want %d of each family", len(nets), prefixes)
		}
	}
}

// Trains: geometric lengths with the mean asked for, packets a gap apart, and other flows in between.
func TestTrains(t *testing.T) {
	const gap = 50 * time.Microsecond
	z, err := NewZipf(ZipfOptions{Packets: 500000, Flows: 500000, Skew: -1, Train: 10, Gap: gap, Rate: 200000, Seed: testutil.Seed(t)})
	if err != nil {
		t.Fatal(err)
	}
	last := map[flow]int64{}
	var p packet.Packet
	var gaps, count, between float64
	var previous flow
	for z.Next(&p) {
		k := flowOf(&p)
		if before, ok := last[k]; ok && p.Time-before < int64(20*gap) {
			gaps += float64(p.Time - before)
			count++
			if previous != k {
				between++
			}
		}
		last[k], previous = p.Time, k
	}
	trains := 500000 - count
	near(t, "packets a train", 500000/trains, 10, 0.03)
	near(t, "gap (ns)", gaps/count, float64(gap), 0.02)
	if between/count < 0.5 {
		t.Errorf("only %.0f %% of the packets have another flow in front", 100*between/count)
	}
}

func TestAlias(t *testing.T) {
	weights := []float64{5, 1, 0, 3, 1}
	a := newAlias(weights)
	r := newRand(1, 1)
	var counts [5]float64
	const n = 1_000_000
	for range n {
		counts[a.draw(r)]++
	}
	for i, w := range weights {
		if math.Abs(counts[i]/n-w/10) > 0.002 {
			t.Errorf("item %d has a share of %.4f, want %.1f", i, counts[i]/n, w/10)
		}
	}
}
