package emulator

import (
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

const ms = int64(time.Millisecond)

func ipPacket(port uint16) packet.Packet {
	return packet.Packet{
		Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, SrcPort: port, DstPort: 80,
		Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"),
	}
}

// decideAll sends n packets of size bytes, gap ns apart.
func decideAll(l *path, n, size int, gap int64) []verdict {
	var all []verdict
	for i := range n {
		p := ipPacket(uint16(i))
		all = append(all, l.decide(int64(i)*gap, &p, size))
	}
	return all
}

func TestSharesAndDeterminism(t *testing.T) {
	d := Direction{Loss: 0.1, Duplicate: 0.05, Reorder: 0.02, Delay: Uniform(5*time.Millisecond, 9*time.Millisecond), ReorderBy: 3 * time.Millisecond}
	const n = 100000
	all := decideAll(newPath(d, 7, 1), n, 100, 1000)
	if !slices.Equal(all, decideAll(newPath(d, 7, 1), n, 100, 1000)) {
		t.Error("the same seed gives other decisions")
	}
	if slices.Equal(all, decideAll(newPath(d, 8, 1), n, 100, 1000)) || slices.Equal(all, decideAll(newPath(d, 7, 2), n, 100, 1000)) {
		t.Error("another seed or direction gives the same decisions")
	}
	var lost, twice, reordered, delay float64
	for i, v := range all {
		if v.fate == Lost {
			lost++
			continue
		}
		took := v.due - int64(i)*1000
		if v.twice {
			twice++
		}
		if v.reordered {
			reordered++
			took -= 3 * ms
		}
		if took < 5*ms || took >= 9*ms {
			t.Fatalf("packet %d takes %d ns", i, took)
		}
		delay += float64(took)
	}
	for _, c := range []struct{ got, want, tolerance float64 }{
		{lost / n, 0.1, 0.006}, {twice / (n - lost), 0.05, 0.005}, {reordered / (n - lost), 0.02, 0.003},
		{delay / (n - lost) / 1e6, 7, 0.03},
	} {
		if math.Abs(c.got-c.want) > c.tolerance {
			t.Errorf("%g, want %g", c.got, c.want)
		}
	}
}

// Drop is called for every packet in order and loses those that it selects, in addition to Loss.
func TestDrop(t *testing.T) {
	asked := 0
	d := Direction{Loss: 0.5, Drop: func(p *packet.Packet, _ *rand.Rand) bool { asked++; return p.SrcPort%2 == 0 }}
	var odd int
	for i, v := range decideAll(newPath(d, 7, 1), 10000, 100, 1000) {
		if v.fate == Passed && i%2 == 0 {
			t.Fatalf("packet %d passed", i)
		}
		if v.fate == Passed {
			odd++
		}
	}
	if asked != 10000 || odd < 2300 || odd > 2700 {
		t.Errorf("asked about %d of 10000; %d of 5000 passed that only Loss may lose", asked, odd)
	}
}

// At 8 Mb/s a packet of 1000 bytes takes 1 ms; the queue of 5000 bytes takes five packets, the rest is dropped.
func TestBottleneck(t *testing.T) {
	l := newPath(Direction{Rate: 8e6, Queue: 5000}, 1, 1)
	for i, v := range decideAll(l, 8, 1000, 0) {
		want := verdict{fate: Passed, due: int64(i+1) * ms}
		if i >= 5 {
			want = verdict{fate: Overflowed}
		}
		if v != want {
			t.Errorf("packet %d: %+v, want %+v", i, v, want)
		}
	}
	p := ipPacket(1)
	if v := l.decide(2*ms, &p, 1000); v.due != 6*ms { // two have left
		t.Errorf("after 2 ms: %+v", v)
	}
	if v := l.decide(100*ms, &p, 1000); v.due != 101*ms {
		t.Errorf("after a pause: %+v", v)
	}
}

func TestKeepOrder(t *testing.T) {
	varying := Uniform(0, 50*time.Millisecond)
	inOrder := func(keep bool) bool {
		all := decideAll(newPath(Direction{Delay: varying, KeepOrder: keep}, 3, 1), 1000, 100, ms)
		return slices.IsSortedFunc(all, func(a, b verdict) int { return int(a.due - b.due) })
	}
	if !inOrder(true) || inOrder(false) {
		t.Error("KeepOrder decides about the order, and nothing else here does")
	}
}

func TestLimit(t *testing.T) {
	l := newPath(Direction{Limit: 2}, 1, 1)
	l.underway = 2
	p := ipPacket(1)
	if v := l.decide(0, &p, 100); v.fate != Overflowed {
		t.Errorf("%v with two packets on their way", v.fate)
	}
}

func TestControlIsNotImpaired(t *testing.T) {
	p := ipPacket(1)
	if isControl(&p, packet.Parsed) {
		t.Error("TCP is control")
	}
	if !isControl(&packet.Packet{}, packet.NotIP) {
		t.Error("ARP is not")
	}
	if !isControl(&packet.Packet{Valid: packet.IP, Proto: 58}, packet.NoTransport) {
		t.Error("neighbour discovery is not")
	}
	if isControl(&packet.Packet{Valid: packet.IP | packet.ICMP, Proto: 58}, packet.Parsed) {
		t.Error("an echo is control")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, d := range []Direction{{Loss: -0.1}, {Duplicate: 1.1}, {Reorder: 2}, {Rate: -1}, {Queue: -1}, {Limit: -1}} {
		if err := d.check("x"); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func TestDelays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := ipPacket(1)
	const n = 20001
	median := func(d Delay) float64 {
		all := make([]time.Duration, n)
		for i := range all {
			all[i] = d(&p, r)
		}
		slices.Sort(all)
		return float64(all[n/2]) / 1e6
	}
	for name, c := range map[string]struct {
		delay Delay
		want  float64 // ms
	}{
		"fixed":      {Fixed(3 * time.Millisecond), 3},
		"uniform":    {Uniform(2*time.Millisecond, 10*time.Millisecond), 6},
		"loguniform": {LogUniform(time.Millisecond, 100*time.Millisecond), 10},
		"lognormal":  {LogNormal(20*time.Millisecond, 1), 20},
		"mixture":    {Mixture([]float64{1, 3}, []Delay{Fixed(time.Millisecond), Fixed(7 * time.Millisecond)}), 7},
	} {
		if got := median(c.delay); math.Abs(got/c.want-1) > 0.05 {
			t.Errorf("%s: median %g ms, want %g", name, got, c.want)
		}
	}
}

func TestPerFlow(t *testing.T) {
	d := PerFlow(9, Uniform(0, time.Second))
	seen := map[time.Duration]bool{}
	for port := range uint16(100) {
		p, r := ipPacket(port), rand.New(rand.NewPCG(1, uint64(port)))
		there := d(&p, r)
		p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
		if back := d(&p, r); back != there {
			t.Fatalf("%v there, %v back", there, back)
		}
		seen[there] = true
	}
	if len(seen) < 99 {
		t.Errorf("%d different delays of 100 connections", len(seen))
	}
}

func TestPoolGivesMemoryBack(t *testing.T) {
	var p pool
	for _, size := range []int{1, 256, 257, 2048, 2049, frameMax} {
		b := p.copy(make([]byte, size))
		if len(b) != size {
			t.Fatalf("%d bytes, want %d", len(b), size)
		}
		p.put(b)
		again := p.copy(make([]byte, size))
		if &again[0] != &b[0] {
			t.Errorf("memory of %d bytes was not used again", size)
		}
		p.put(again)
	}
	if big := p.copy(make([]byte, frameMax+1)); len(big) != frameMax+1 {
		t.Errorf("%d bytes, want %d", len(big), frameMax+1)
	}
}
