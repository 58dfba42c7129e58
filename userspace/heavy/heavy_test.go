package heavy

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

func flow(src, dst string) packet.Packet {
	return packet.Packet{Valid: packet.IP | packet.Ports, Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst),
		SrcPort: 1234, DstPort: 443, Proto: 6}
}

// TestKeysNameFlows: a key contains the packet's fields, for every kind and family.
func TestKeysNameFlows(t *testing.T) {
	for _, kind := range KindNames {
		fields, err := ParseKind(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range FamilyNames {
			s := Spec{Fields: fields, Family: ParseFamily(family)}
			for _, p := range []packet.Packet{flow("192.0.2.1", "198.51.100.7"), flow("2001:db8::1", "2001:db8:1:2:3:4:5:6")} {
				key, ok := s.Of(&p)
				if want := s.Family == Both || (s.Family == IPv4) == p.Src.Is4(); ok != want {
					t.Fatalf("%s, family %s: %v has a key: %v", kind, family, p.Src, ok)
				}
				if !ok {
					continue
				}
				if key == (Key{}) || s.IsV4(key) != p.Src.Is4() {
					t.Errorf("%s, family %s: key %x of %v", kind, family, key, p.Src)
				}
				src, dst := s.Addrs(key)
				if fields&Src != 0 && src != p.Src || fields&Dst != 0 && dst != p.Dst {
					t.Errorf("%s, family %s: %v > %v became %v > %v", kind, family, p.Src, p.Dst, src, dst)
				}
				if cells := s.Cells(key); len(cells) != len(s.Columns()) {
					t.Errorf("%s: %d cells for %d columns", kind, len(cells), len(s.Columns()))
				}
			}
		}
	}
}

// TestStaleWords: words left by an IPv6 flow do not make another flow of an IPv4 one.
func TestStaleWords(t *testing.T) {
	s := Spec{Fields: Src | Dst}
	p4, p6 := flow("192.0.2.1", "198.51.100.7"), flow("2001:db8::1", "2001:db8::2")
	old, _ := s.Of(&p6)
	key, _ := s.Of(&p4)
	stored := old
	stored[0], stored[1] = key[0], key[1]
	if s.Clean(stored) != key {
		t.Errorf("%x is read as %x", stored, s.Clean(stored))
	}
}

func prefix(text string) Prefix { return Prefix{Src: netip.MustParsePrefix(text)} }

// TestConditionedCounts: a parent is heavy only by what its heavy children do not explain.
func TestConditionedCounts(t *testing.T) {
	counts := map[Prefix]float64{
		prefix("0.0.0.0/0"): 1000, prefix("10.0.0.0/8"): 700, prefix("10.1.0.0/16"): 650, prefix("10.1.1.0/24"): 400,
		prefix("10.1.1.1/32"): 350, prefix("10.1.2.0/24"): 200, prefix("172.0.0.0/8"): 90,
	}
	want := map[Prefix]float64{prefix("0.0.0.0/0"): 350, prefix("10.1.0.0/16"): 100, prefix("10.1.1.1/32"): 350, prefix("10.1.2.0/24"): 200}
	found := Hierarchical(counts, 100)
	if len(found) != len(want) {
		t.Errorf("found %v", found)
	}
	for _, h := range found {
		if h.Conditioned != want[h.Prefix] {
			t.Errorf("%v: conditioned count %v, want %v", h.Prefix, h.Conditioned, want[h.Prefix])
		}
	}
}

// TestTwoDimensions: what two heavy descendants have in common is taken off once.
func TestTwoDimensions(t *testing.T) {
	any, src, dst := netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("20.0.0.0/8")
	counts := map[Prefix]float64{{any, any}: 1000, {src, any}: 400, {any, dst}: 300, {src, dst}: 60}
	for _, h := range Hierarchical(counts, 100) {
		if h.Prefix == (Prefix{any, any}) && h.Conditioned != 1000-400-300+60 {
			t.Errorf("root: conditioned count %v, want 360", h.Conditioned)
		}
	}
}

// TestGreatestLowerBounds: two heavy descendants are put back where they overlap, unless a third explains that, too.
func TestGreatestLowerBounds(t *testing.T) {
	both := func(src, dst string) Prefix { return Prefix{netip.MustParsePrefix(src), netip.MustParsePrefix(dst)} }
	root := both("0.0.0.0/0", "0.0.0.0/0")
	a, b := both("10.1.0.0/16", "0.0.0.0/0"), both("0.0.0.0/0", "20.1.0.0/16")
	third := both("10.0.0.0/8", "20.0.0.0/8") // has what a and b have in common
	for _, c := range []struct {
		found, minus, plus []Prefix
	}{
		{[]Prefix{a, b}, []Prefix{a, b}, []Prefix{both("10.1.0.0/16", "20.1.0.0/16")}},
		{[]Prefix{a, both("10.2.0.0/16", "20.1.0.0/16")}, []Prefix{a, both("10.2.0.0/16", "20.1.0.0/16")}, nil}, // other sources
		{[]Prefix{b, both("10.2.0.0/16", "20.2.0.0/16")}, []Prefix{b, both("10.2.0.0/16", "20.2.0.0/16")}, nil}, // other destinations
		{[]Prefix{a, b, third}, []Prefix{a, b, third}, []Prefix{both("10.1.0.0/16", "20.0.0.0/8"), both("10.0.0.0/8", "20.1.0.0/16")}},
		{[]Prefix{root, a, both("10.1.2.0/24", "0.0.0.0/0")}, []Prefix{a}, nil}, // itself, and what lies below a
		{[]Prefix{{Src: a.Src}, both("2001:db8::/32", "::/0")}, nil, nil},       // other dimensions, another family
	} {
		var found []Heavy
		for _, p := range c.found {
			found = append(found, Heavy{Prefix: p})
		}
		if minus, plus := Parts(found, root); !slices.Equal(minus, c.minus) || !slices.Equal(plus, c.plus) {
			t.Errorf("%v: %v are taken off and %v put back, want %v and %v", c.found, minus, plus, c.minus, c.plus)
		}
	}
}

// TestAdmissionTable: the twin's rules cover every value once, with a probability between 1/v and 9/8 of it.
func TestAdmissionTable(t *testing.T) {
	rules := admissions()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		value := 1 + rng.Uint32N(1<<20)>>rng.UintN(20)
		matches, p := 0, 0.0
		for _, r := range rules {
			if value&r.mask == r.low {
				matches++
				p = float64(r.limit) / (1 << 31)
			}
		}
		ratio := p * float64(value)
		if matches != 1 || ratio < 1-1e-3 || ratio > 9.0/8+1e-3 {
			t.Fatalf("value %d: %d rules, probability %.4f of 1/value", value, matches, ratio)
		}
	}
}
