package beaucoup

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// sip is SipHash-c-d of Aumasson and Bernstein, over bytes.
func sip(c, d int, key [2]uint64, msg []byte) uint64 {
	v := [4]uint64{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573}
	round := func() {
		v[0] += v[1]
		v[2] += v[3]
		v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
		v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
		v[0] = bits.RotateLeft64(v[0], 32)
		v[2] += v[1]
		v[0] += v[3]
		v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
		v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
		v[2] = bits.RotateLeft64(v[2], 32)
	}
	length := len(msg)
	for msg = append(msg[:length:length], make([]byte, 8-length%8)...); len(msg) > 0; msg = msg[8:] {
		m := binary.LittleEndian.Uint64(msg)
		if len(msg) == 8 {
			m |= uint64(length) << 56
		}
		v[3] ^= m
		for range c {
			round()
		}
		v[0] ^= m
	}
	v[2] ^= 0xff
	for range d {
		round()
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// The test vector of the paper, appendix A.
func TestSipReference(t *testing.T) {
	msg := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	if got := sip(2, 4, [2]uint64{0x0706050403020100, 0x0f0e0d0c0b0a0908}, msg); got != 0xa129ca6149be45e5 {
		t.Fatalf("SipHash-2-4 is %#x", got)
	}
}

// hash is what the program calculates of an attribute.
func (i *instance) hash(w *compile.Words, mask *compile.Words, salted uint64) uint64 {
	if !i.keyed {
		sum := salted
		for n := range w {
			sum += (w[n] & mask[n]) * (compile.Salt(i.seed, uint64(n), "multiplier") | 1)
		}
		for range 2 {
			sum ^= sum >> 32
			sum *= 0xd6e8feb86659fd93
		}
		return sum ^ sum>>32
	}
	msg := binary.LittleEndian.AppendUint64(nil, salted)
	for n := range w {
		msg = binary.LittleEndian.AppendUint64(msg, w[n]&mask[n])
	}
	return sip(1, 3, [2]uint64{compile.Salt(i.seed, 0, "key"), compile.Salt(i.seed, 1, "key")}, msg)
}

// The program draws the coupons that Go calculates, with the fast hash and with the keyed one: every key has one attribute,
// and with 32 coupons of probability 1/32 every attribute draws one.
func TestCouponsAreThoseOfTheHash(t *testing.T) {
	for _, keyed := range []string{"false", "true"} {
		i, feed := loaded(t, map[string]string{"queries": "q: count distinct dst+sport by src > 43 in 10m", "budget": "1", "export": "true", "keyed": keyed})
		c := &i.program.Queries[0]
		a := &i.program.Attributes[0]
		random, want := rand.New(rand.NewPCG(1, 1)), map[string]uint64{}
		for n := range 500 {
			s := builder.Spec{Time: 1_000_000_000, IP: builder.IP{Src: netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}),
				Dst: netip.AddrFrom4([4]byte{192, byte(random.Uint32()), byte(random.Uint32()), 1})},
				TCP: &builder.TCP{SrcPort: uint16(random.Uint32()), DstPort: 2, Flags: packet.SYN}}
			f := builder.MustBuild(&s)
			if err := feed.Feed(&f); err != nil {
				t.Fatal(err)
			}
			var p packet.Packet
			packet.Decode(&f, packet.DecodeOptions{}, &p)
			w := compile.WordsOf(&p, 0, 0)
			step := i.hash(&w, &a.Mask, compile.Salt(i.seed, 0, "attribute", a.Definition())) >> 32 >> (32 - a.Grain)
			first := uint64(math.Ldexp(c.Start, a.Grain))
			want[c.Key.Name(w.And(&c.Key.Mask), nil)] = 1 << (step - first)
		}
		got := windowOf(t, i, feed)
		if n, err := i.counts.Read(0, nil); err != nil || n[countDrawn] != 500 {
			t.Errorf("keyed %s: 500 packets of which each draws a coupon drew %d, %v", keyed, n[countDrawn], err)
		}
		if len(got) < len(want)-10 { // of 500 keys in 65,536 places two collide on average
			t.Errorf("keyed %s: %d keys, want %d", keyed, len(got), len(want))
		}
		used := uint64(0)
		for key, coupons := range want {
			if g, placed := got[key]; placed && g != coupons {
				t.Fatalf("keyed %s: %s has coupons %x, want %x", keyed, key, got[key], coupons)
			}
			used |= coupons
		}
		if bits.OnesCount64(used) != 32 { // some coupon missing has a probability of 32 (31/32)^500 < 10^-5
			t.Errorf("keyed %s: 500 attributes draw only coupons %x", keyed, used)
		}
	}
}

// loaded is an instance in the kernel, and what feeds it.
func loaded(t *testing.T, set map[string]string) (*instance, *replay.Replayer) {
	t.Helper()
	testutil.NeedRoot(t)
	d := descriptor()
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	objects, instances, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Seed: 9}, true)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := loader.Load(objects, loader.Options{Replay: true, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inst.Close() })
	maps, err := inst.Set(Name)
	if err != nil {
		t.Fatal(err)
	}
	i := instances[0].(*instance)
	if err := i.Bind(maps); err != nil {
		t.Fatal(err)
	}
	feed, err := replay.New(inst, 9)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { feed.Close() })
	return i, feed
}

// windowOf are the coupons of every key.
func windowOf(t *testing.T, i *instance, feed *replay.Replayer) map[string]uint64 {
	t.Helper()
	if err := feed.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := i.poll(); err != nil {
		t.Fatal(err)
	}
	_, vectors := i.alerted(t)
	got := map[string]uint64{}
	for _, v := range vectors {
		got[v.query.Key.Name(v.key, nil)] |= v.coupons
	}
	return got
}

// Attributes of traffic that is as regular as can be, addresses and ports that count upwards, draw like random numbers: every
// coupon as often as the others, and different attributes, also ones that contain each other, independently.
func TestHashesAreIndependent(t *testing.T) {
	const inputs, parts = 1 << 16, 256
	d := descriptor()
	values, err := algo.NewValues(d.Name, d.Params, map[string]string{"set": "many"})
	if err != nil {
		t.Fatal(err)
	}
	i, err := configured(values, algo.Env{Seed: testutil.Seed(t)})
	if err != nil {
		t.Fatal(err)
	}
	n := len(i.program.Attributes)
	counts := make([][parts]int, n)
	both := make([][]int, n)
	salts := make([]uint64, n)
	for a := range both {
		both[a] = make([]int, n)
		salts[a] = compile.Salt(i.seed, 0, "attribute", i.program.Attributes[a].Definition())
	}
	drawn := make([]bool, n)
	for in := range uint64(inputs) {
		w := compile.Words{0, 0xffff<<32 | 10<<24 | in, 0, 0xffff<<32 | 192<<24 | in, (1024+in&0xffff)<<compile.ShiftSport | (in*7&0xffff)<<compile.ShiftDport | 6<<compile.ShiftProto, in, 0, 0}
		for a := range drawn {
			h := i.hash(&w, &i.program.Attributes[a].Mask, salts[a])
			counts[a][h>>56]++
			drawn[a] = h>>60 == 0
			for b := range a {
				if drawn[a] && drawn[b] {
					both[a][b]++
				}
			}
		}
	}
	for a := range n {
		mask := &i.program.Attributes[a].Mask
		if mask[compile.WordSrcLow]|mask[compile.WordDstLow]|mask[compile.WordPacket] == 0 {
			continue // ports repeat: fewer different attributes than inputs
		}
		chi := 0.0
		for _, c := range counts[a] {
			off := float64(c) - inputs/parts
			chi += off * off / (inputs / parts)
		}
		if chi > parts-1+6*math.Sqrt(2*(parts-1)) { // six standard deviations
			t.Errorf("distinct %s: chi-square %.0f of %d parts", i.program.Attributes[a].Text, chi, parts)
		}
		for b := range a {
			const want = inputs / 256
			if maskB := &i.program.Attributes[b].Mask; maskB[compile.WordSrcLow]|maskB[compile.WordDstLow]|maskB[compile.WordPacket] == 0 {
				continue
			}
			if off := float64(both[a][b] - want); math.Abs(off) > 6*math.Sqrt(want) {
				t.Errorf("distinct %s and %s draw together %d times, want %d", i.program.Attributes[a].Text, i.program.Attributes[b].Text, both[a][b], want)
			}
		}
	}
}

// Every window has hashes of its own where that is asked for, and starts with an empty table.
func TestRotationChangesTheHashes(t *testing.T) {
	i, feed := loaded(t, map[string]string{"queries": "q: count distinct dst by src > 43 in 10m", "budget": "1", "rotate": "true"})
	seen := map[uint64]bool{}
	for window := range 4 {
		row := bpf.BeaucoupBeaucoupAttribute{}
		if err := i.tables.Attributes.Map().Lookup(i.tables.Half*compile.MaxAttributes, &row); err != nil {
			t.Fatal(err)
		}
		seen[row.Salt] = true
		f := builder.MustBuild(&builder.Spec{Time: 1_000_000_000, IP: builder.IP{Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}),
			Dst: netip.AddrFrom4([4]byte{10, 0, 0, 2})}, TCP: &builder.TCP{Flags: packet.SYN}})
		if err := feed.Feed(&f); err != nil {
			t.Fatal(err)
		}
		if err := feed.Flush(); err != nil {
			t.Fatal(err)
		}
		if n, err := i.alive(1_000_000_000); n != 1 || err != nil {
			t.Errorf("window %d: %d collectors are alive, want 1: %v", window, n, err)
		}
		if _, err := algo.Window(i, report.Window{End: 1_000_000_000}, 0); err != nil {
			t.Fatal(err)
		}
		if n, err := i.alive(1_000_000_000); n != 0 || err != nil {
			t.Errorf("after window %d %d collectors are alive: %v", window, n, err)
		}
	}
	if len(seen) != 4 {
		t.Errorf("4 windows had %d different hashes", len(seen))
	}
}
