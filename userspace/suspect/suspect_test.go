package suspect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

func read(t *testing.T, text string) *Paths {
	t.Helper()
	p, err := Read("paths", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func loss(source, destination string, lost float64) algo.Loss {
	return algo.Loss{Source: netip.MustParseAddr(source), Destination: netip.MustParseAddr(destination), Lost: lost}
}

// The paper's example: two connections that share A-B have losses; what follows B differs.
func TestCommonLink(t *testing.T) {
	p := read(t, "10.1.0.0/16 10.2.0.0/16 A-B B-C1 C1-D # first\n10.1.0.0/16 10.3.0.0/16 A-B B-C2 C2-D\n10.4.0.0/16 10.2.0.0/16 E-B B-C1 C1-D\n")
	r := p.Rank([]algo.Loss{loss("10.1.0.1", "10.2.9.9", 50), loss("10.1.7.1", "10.3.0.1", 30), loss("192.0.2.1", "10.3.0.1", 9), loss("10.4.0.1", "10.2.0.1", 0)})
	if r.Links[0].Name != "A-B" || r.Links[0].Explained != 1 || r.Links[0].Afflicted != 1 || r.Flows != 2 || r.Unknown != 1 {
		t.Errorf("%+v", r)
	}
	if p.Rank(nil).Links != nil {
		t.Error("suspects without losses")
	}
}

// The longest pair wins, whatever the order of lines; paths of a pair share what it has lost.
func TestLongest(t *testing.T) {
	p := read(t, "0.0.0.0/0 0.0.0.0/0 any\n10.0.0.0/8 10.2.0.0/16 wide\n10.1.0.0/16 10.2.0.0/16 one\n10.1.0.0/16 10.2.0.0/16 two\n2001:db8::/32 ::/0 six\n")
	r := p.Rank([]algo.Loss{loss("10.1.0.1", "10.2.0.1", 4)})
	if len(r.Links) != 2 || r.Links[0].Name != "one" || r.Links[0].Explained != .5 || r.Links[1].Name != "two" {
		t.Errorf("%+v", r.Links)
	}
	if r := p.Rank([]algo.Loss{loss("2001:db8::1", "2001:db9::1", 4)}); r.Links[0].Name != "six" {
		t.Errorf("%+v", r.Links)
	}
	if r := p.Rank([]algo.Loss{loss("::ffff:10.9.0.1", "10.2.0.1", 4)}); r.Links[0].Name != "wide" {
		t.Errorf("%+v", r.Links)
	}
}

// The table has the most suspect links, ten or all, and states for how many flows nothing is known.
func TestBody(t *testing.T) {
	for links, rows := range map[int]int{0: 0, 3: 3, 10: 10, 12: 10} {
		r := Ranking{Flows: 5, Unknown: 2}
		for n := range links {
			r.Links = append(r.Links, Link{Name: fmt.Sprint("l", n), Score: float64(9 - n), Explained: .5, Afflicted: .25, Pairs: n})
		}
		b := r.Body()
		got := b.Tables[0].Rows
		if len(got) != rows || rows > 1 && fmt.Sprint(got[1]) != "[l1 8 0.5 0.25 1]" {
			t.Errorf("%d links: %v", links, got)
		}
		if b.Values[0].Name != "lossy_flows" || b.Values[0].Value != int64(5) || b.Values[1].Name != "lossy_flows_unknown" || b.Values[1].Value != int64(2) {
			t.Errorf("%+v", b.Values)
		}
	}
}

func TestRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "no paths",
		"10.0.0.0/8 10.0.0.0/8\n":    "paths:1: a line is",
		"#\n10.0.0.1 10.0.0.0/8 a\n": "paths:2: \"10.0.0.1\" is no prefix",
		"10.0.0.0/8 ::/0 a\n":        "two families",
	} {
		if _, err := Read("paths", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// fabric is a network of 6 leaves and 4 spines with 24 links between them and 6 to the outside: 30, of which each pair of leaves crosses one
// spine, chosen at random, and traffic to the outside leaves by its leaf.
func fabric(rng *rand.Rand) (text string, links []string) {
	var b strings.Builder
	const leaves, spines = 6, 4
	for l := range leaves {
		links = append(links, fmt.Sprintf("out%d", l))
		for s := range spines {
			links = append(links, fmt.Sprintf("l%d-s%d", l, s))
		}
		fmt.Fprintf(&b, "10.%d.0.0/16 0.0.0.0/0 out%d\n", l, l)
	}
	for from := range leaves {
		for to := range leaves {
			for net := range 4 {
				if s := rng.IntN(spines); from != to {
					fmt.Fprintf(&b, "10.%d.%d.0/24 10.%d.0.0/16 l%d-s%d l%d-s%d\n", from, net, to, from, s, to, s)
				}
			}
		}
	}
	return b.String(), links
}

// One of 30 links loses 1 % of the packets, every other one 0.02 %. What a report names is what the largest losers are, and its numbers are
// off by the sketch's noise.
func TestOneOfThirty(t *testing.T) {
	oneOfThirty(t, 200, 5000, 95)
	oneOfThirty(t, 300, 2000, 87) // too few of them have lost anything: some 58 flows
}

func oneOfThirty(t *testing.T, runs, flows, percent int) {
	t.Helper()
	const named = 128
	first := 0
	for run := range runs {
		rng := rand.New(rand.NewPCG(uint64(run), 15))
		text, links := fabric(rng)
		p := read(t, text)
		bad := links[rng.IntN(len(links))]
		var losses []algo.Loss
		for range flows {
			from := rng.IntN(6)
			source := netip.AddrFrom4([4]byte{10, byte(from), byte(rng.IntN(4)), byte(rng.IntN(254) + 1)})
			destination := netip.AddrFrom4([4]byte{10, byte((from + 1 + rng.IntN(5)) % 6), 0, byte(rng.IntN(254) + 1)})
			if rng.IntN(6) == 0 {
				destination = netip.AddrFrom4([4]byte{198, 51, 100, byte(rng.IntN(254) + 1)})
			}
			packets := 20 / math.Pow(1-rng.Float64(), .9) // a tail, as sizes of flows have
			packets = min(packets, 50000)
			at, _ := p.of(source, destination)
			good := 1.
			for _, l := range p.pairs[at][0] {
				rate := .0002
				if l == bad {
					rate = .01
				}
				good *= 1 - rate
			}
			mean := packets * (1 - good)
			const sketch = 2 // standard error of a sketch's estimate; a value within two of them is no loss
			lost := math.Round(math.Max(0, mean+math.Sqrt(mean)*rng.NormFloat64())) + sketch*rng.NormFloat64()
			if lost < 2*sketch {
				continue
			}
			losses = append(losses, algo.Loss{Source: source, Destination: destination, Lost: lost})
		}
		losses = largest(losses, named)
		if r := p.Rank(losses); len(r.Links) > 0 && r.Links[0].Name == bad {
			first++
		}
	}
	t.Logf("%d flows: first in %d of %d runs", flows, first, runs)
	if first < runs*percent/100 {
		t.Errorf("%d flows: the lossy link is first in %d of %d runs", flows, first, runs)
	}
}

func largest(list []algo.Loss, n int) []algo.Loss {
	for i := range min(n, len(list)) {
		for j := i + 1; j < len(list); j++ {
			if list[j].Lost > list[i].Lost {
				list[i], list[j] = list[j], list[i]
			}
		}
	}
	return list[:min(n, len(list))]
}

// Only a link on which more is lost than elsewhere is suspect: one that loses less explains nothing, whatever the others do.
func TestLessThanElsewhere(t *testing.T) {
	for _, c := range []struct {
		in, across float64
		suspect    bool
	}{{1, 3, false}, {0, 0, false}, {5, 2, false}, {9, 1, true}, {9, 3, true}, {10, 1, true}} {
		if score := scan(c.in, c.across, 10, 4); (score > 0) != c.suspect || !c.suspect && score != 0 {
			t.Errorf("%g of 10 losses on %g of 4 pairs: %g", c.in, c.across, score)
		}
	}
}
