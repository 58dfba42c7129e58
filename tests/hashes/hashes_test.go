package hashes

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/micro"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const flowSeeds, flowPackets = 3, 300

// The programs hash every bit of a flow and of a key as it is written here, IPv4 and IPv6.
func TestProgramsHashAsWritten(t *testing.T) {
	testutil.NeedRoot(t)
	key := heavy.Spec{Fields: heavy.Src | heavy.Dst | heavy.SrcPort | heavy.DstPort | heavy.Proto}
	for seed := range uint64(flowSeeds) {
		s, random := New(seed), rand.New(rand.NewPCG(seed, 1))
		compare(t, seed, "flowhash", random, func(p *packet.Packet) uint64 {
			return s.Flow(s.Endpoint(p.Src, p.SrcPort, p.Proto), s.Endpoint(p.Dst, p.DstPort, p.Proto))
		})
		compare(t, seed, "keyhash", random, func(p *packet.Packet) uint64 {
			k, _ := key.Of(p)
			if p.Src.Is4() {
				return s.Key(k[:2]...)
			}
			return s.Key(k[:]...)
		})
		carried := func(p *packet.Packet) uint64 {
			return s.Carried(netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort), p.Proto)
		}
		compare(t, seed, "carry", random, carried)
		compare(t, seed, "spread", random, func(p *packet.Packet) uint64 { return s.Spread(carried(p)) })
	}
}

// compare runs random packets through a yardstick that leaves a hash in the vector.
func compare(t *testing.T, seed uint64, name string, random *rand.Rand, want func(*packet.Packet) uint64) {
	t.Helper()
	spec, err := micro.Spec(name)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := loader.Load([]loader.Object{{Name: name, Spec: spec}}, loader.Options{Replay: true, Fixed: true, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	feed, err := replay.New(inst, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for range flowPackets {
		s := randomFlow(random)
		f := builder.MustBuild(&s)
		var p packet.Packet
		packet.Decode(&f, packet.DecodeOptions{}, &p)
		phv, err := feed.Step(&f)
		if err != nil {
			t.Fatal(err)
		}
		if phv.Carry[0] != want(&p) {
			t.Fatalf("seed %d: %s of %v:%d -> %v:%d (%d) is %#x, want %#x", seed, name, p.Src, p.SrcPort, p.Dst, p.DstPort, p.Proto, phv.Carry[0], want(&p))
		}
	}
}

func randomFlow(random *rand.Rand) builder.Spec {
	ports := [2]uint16{uint16(random.Uint32()), uint16(random.Uint32())}
	s := builder.Spec{Time: 1_000_000_000, IP: builder.IP{Src: randomAddr(random), Dst: randomAddr(random)}}
	if random.IntN(2) == 0 {
		four := [2][4]byte{{10, 0, 0, byte(random.Uint32())}, {byte(random.Uint32()), 2, 3, 4}}
		s.IP.Src, s.IP.Dst = netip.AddrFrom4(four[0]), netip.AddrFrom4(four[1])
	}
	if random.IntN(2) == 0 {
		s.TCP = &builder.TCP{SrcPort: ports[0], DstPort: ports[1], Flags: packet.SYN}
	} else {
		s.UDP = &builder.UDP{SrcPort: ports[0], DstPort: ports[1]}
	}
	return s
}

func randomAddr(random *rand.Rand) netip.Addr {
	b := [16]byte{0x20, 1}
	for n := 2; n < len(b); n++ {
		b[n] = byte(random.Uint32())
	}
	return netip.AddrFrom16(b)
}

// Inputs that differ in one or two chosen bits agree in all 64 bits of hash for no seed, and in 16 of them as often as chance
// has it. A pair that collides in a part of all seeds shows at once: there are 64 seeds for each.
func TestChosenBitsDoNotCollide(t *testing.T) {
	const seeds = 64
	for name, hash := range map[string]struct {
		words int
		hash  func(s *Seeded, w []uint32) uint64
	}{
		"endpoint": {5, func(s *Seeded, w []uint32) uint64 { return s.multilinear(0, w...) }},
		"pair": {4, func(s *Seeded, w []uint32) uint64 {
			return s.Flow(uint64(w[0])<<32|uint64(w[1]), uint64(w[2])<<32|uint64(w[3]))
		}},
		"flow": {10, func(s *Seeded, w []uint32) uint64 {
			return s.Flow(s.multilinear(0, w[:5]...), s.multilinear(0, w[5:]...))
		}},
		"both ends": {5, func(s *Seeded, w []uint32) uint64 {
			return s.Flow(s.multilinear(0, w...), s.multilinear(0, w[0]^1, w[1]^2, w[2], w[3], w[4]))
		}},
		"key": {10, func(s *Seeded, w []uint32) uint64 { return Mix(s.multilinear(0, w...)) }},
	} {
		pairs, low, high, seed := 0, 0, 0, testutil.Seed(t)
		for n := range uint64(seeds) {
			s, random := New(seed+n), rand.New(rand.NewPCG(seed, n))
			w := make([]uint32, hash.words)
			for i := range w {
				w[i] = random.Uint32()
			}
			first := hash.hash(s, w)
			flips(w, func(a, b int) {
				h := hash.hash(s, w)
				if h == first {
					t.Fatalf("%s, seed %d: flipping bits %d and %d changes nothing", name, seed+n, a, b)
				}
				pairs++
				low += same(uint16(h), uint16(first))
				high += same(uint16(h>>48), uint16(first>>48))
			})
		}
		want := float64(pairs) / 65536
		for part, got := range map[string]int{"low": low, "high": high} {
			if math.Abs(float64(got)-want) > 6*math.Sqrt(want) {
				t.Errorf("%s: of %d pairs %d agree in the %s 16 bits, want %.0f", name, pairs, got, part, want)
			}
		}
	}
}

// flips shows w with every bit and every two bits inverted.
func flips(w []uint32, show func(a, b int)) {
	for a := range 32 * len(w) {
		for b := a; b < 32*len(w); b++ {
			w[a/32] ^= 1 << (a % 32)
			if a != b {
				w[b/32] ^= 1 << (b % 32)
			}
			show(a, b)
			w[a/32] ^= 1 << (a % 32)
			if a != b {
				w[b/32] ^= 1 << (b % 32)
			}
		}
	}
}

func same(a, b uint16) int {
	if a == b {
		return 1
	}
	return 0
}
