package compile

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

func compiledAs(t *testing.T, text string, o CompileOptions) *Program {
	t.Helper()
	queries, err := ParseQueries(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(queries, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var usual = CompileOptions{Budget: 1.0 / 3, Word: 32, Ties: true}

// Every coupon has its share of the hash, and no two share a step.
func TestCouponsAreDisjoint(t *testing.T) {
	for _, text := range []string{SixQueries, ManyQueries} {
		p := compiledAs(t, text, usual)
		steps := map[uint32]int{}
		for _, entry := range p.coupons() {
			if entry != 0 {
				steps[entry&0xffff]++
			}
		}
		drawn := 0.0
		for i := range p.Queries {
			c := &p.Queries[i]
			drawn += c.Rate()
			a := p.Attributes[c.Group]
			for coupon := range c.Collector.M {
				got := float64(steps[uint32(c.ID)<<8|uint32(coupon)]) / float64(int(1)<<a.Grain)
				if got != c.Collector.P {
					t.Errorf("%s, coupon %d: has %g of the hash, want %g", c.Name, coupon, got, c.Collector.P)
				}
			}
		}
		if drawn > usual.Budget*1.001 || drawn < usual.Budget*0.7 {
			t.Errorf("%d queries draw %.3f coupons a packet of a budget of %.3f", len(p.Queries), drawn, usual.Budget)
		}
	}
}

// The budget that queries of large thresholds do not need is given to those of small ones (section 4.6); their mean draws are the
// threshold within 5 %, after ties.
func TestBudgetIsSpent(t *testing.T) {
	for _, text := range []string{SixQueries, ManyQueries} {
		p := compiledAs(t, text, usual)
		fair := usual.Budget / float64(len(p.Queries))
		if got := p.rate(); got < 0.9*usual.Budget {
			t.Errorf("%d queries draw %.3f coupons a packet of %.3f", len(p.Queries), got, usual.Budget)
		}
		if c := p.Queries[2]; c.Name != "port-scan" || len(p.Queries) == 6 && c.Rate() < 1.5*fair {
			t.Errorf("%s draws %.3f coupons a packet, its fair share is %.3f", c.Name, c.Rate(), fair)
		}
		for i := range p.Queries {
			c := &p.Queries[i]
			if bias := p.Effective(c).Draws()/float64(c.Threshold) - 1; bias > 0.05 || bias < -0.05 {
				t.Errorf("%s: %+v takes %.3f more draws than the threshold", c.Name, c.Collector, bias)
			}
		}
	}
}

func TestManyQueriesHaveElevenAttributes(t *testing.T) {
	p := compiledAs(t, ManyQueries, usual)
	if len(p.Queries) < 26 || len(p.Attributes) > 11 {
		t.Errorf("%d queries over %d attributes, want 26 over 11", len(p.Queries), len(p.Attributes))
	}
}

// A query that stays keeps its identifier, its collector and its place, whatever else changes.
func TestUpdateKeepsQueries(t *testing.T) {
	before := compiledAs(t, SixQueries, usual)
	o := usual
	o.Keep = before
	lines := strings.Split(strings.TrimSpace(SixQueries), "\n")
	after := compiledAs(t, strings.Join(lines[1:], "\n")+"\nnew: count distinct dst by src+sport > 200 in 5s", o)
	for i := range after.Queries {
		c := &after.Queries[i]
		old := before.Find(c.Text())
		if old == nil {
			if before.ByID(c.ID) != nil {
				t.Errorf("%s took the identifier of a query that still has collectors", c.Name)
			}
			continue
		}
		if old.ID != c.ID || old.Collector != c.Collector || old.Start != c.Start {
			t.Errorf("%s changed from %+v to %+v", c.Name, old, c)
		}
		a, b := before.Attributes[old.Group], after.Attributes[c.Group]
		if a.Definition() != b.Definition() {
			t.Errorf("%s: its attribute's hash changed", c.Name)
		}
	}
}

func TestBadQueriesAreRefused(t *testing.T) {
	for text, want := range map[string]error{
		"x: count dst by src > 1 in 1s":                                                  ErrQuery,
		"x: count distinct ttl by src > 1 in 1s":                                         ErrField,
		"x: count distinct dst by src > 1 in 1s if ttl=3":                                ErrField,
		"x: count distinct dst by timestamp > 1 in 1s":                                   nil,
		"x: count distinct dst by src > 0 in 1s":                                         nil,
		"x: count distinct dst by src > 5 in 3h":                                         nil,
		"x: count distinct dst/24 by src > 5 in 1s if ipv6":                              nil,
		"x: count distinct dst by src > 5 in 1s; x: count distinct dst by src > 6 in 1s": nil,
		"": nil,
	} {
		_, err := ParseQueries(text)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%q: error %v, want %v", text, err, want)
		}
	}
}

func TestYAML(t *testing.T) {
	queries, err := ParseYAML([]byte("queries:\n  - a: count distinct dst by src > 10 in 1s\n  - b: count distinct src+sport by dst/24 > 5 in 2m if tcp.syn and not tcp.ack\n"))
	if err != nil || len(queries) != 2 || queries[1].Name != "b" || queries[1].Threshold != 5 {
		t.Errorf("read %+v, %v", queries, err)
	}
}

// A packet's words contain only its own fields, whatever an earlier packet left there. Fields are formatted as they were read.
func TestWordsOf(t *testing.T) {
	tuple, err := ParseTuple("src/24+dst+sport+dport+proto+tcp.flags+vlan+timestamp+dns.id+dns.qname")
	if err != nil {
		t.Fatal(err)
	}
	p := packet.Packet{Src: netip.MustParseAddr("10.1.2.3"), Dst: netip.MustParseAddr("10.4.5.6"), SrcPort: 7, DstPort: 8, Proto: 17, TCPFlags: 9, VLAN: 10, AppID: 11, QName: "a.example"}
	for _, c := range []struct {
		valid           packet.Valid
		flags, vlan, id string
		app, named      bool
	}{
		{packet.IP | packet.RTP, "0", "0", "0", false, false}, {packet.IP | packet.TCP, "9", "0", "0", false, false}, {packet.IP | packet.VLAN, "0", "10", "0", false, false},
		{packet.IP | packet.AppRequest, "0", "0", "11", true, false}, {packet.IP | packet.AppResponse, "0", "0", "11", true, false}, {packet.IP | packet.HasQName, "0", "0", "0", false, true},
	} {
		p.Valid = c.valid
		w := WordsOf(&p, 12, 13)
		if (ValidOf(&p)&hasApp != 0) != c.app || (w[wordName] == packet.HashName(13, "a.example")) != c.named || (w[wordName] != 0) != c.named {
			t.Errorf("%b: %x, valid %b", c.valid, w, ValidOf(&p))
		}
		name := "0000000000000000"
		if c.named {
			name = "a.example"
		}
		want := "src=10.1.2.3/24 dst=10.4.5.6 sport=7 dport=8 proto=17 tcp.flags=" + c.flags + " vlan=" + c.vlan + " timestamp=12 dns.id=" + c.id + " dns.qname=" + name
		if got := tuple.Name(w, map[uint64]string{packet.HashName(13, "a.example"): "a.example"}); got != want {
			t.Errorf("%b: %s, want %s", c.valid, got, want)
		}
		if family := w[WordPorts] >> shiftFamily & 15; family != 4 {
			t.Errorf("family %d", family)
		}
	}
	p.Src, p.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	if w := WordsOf(&p, 0, 0); w[WordPorts]>>shiftFamily&15 != 6 || w[wordDstHigh] != 0x20010db8<<32 || w[WordDstLow] != 2 || w[WordSrcLow] != 1 {
		t.Errorf("%x", w)
	}
}

// A prefix keeps its number of bits, of either family.
func TestPrefixes(t *testing.T) {
	for text, want := range map[string]string{"src/1": "128.0.0.0", "src/8": "192.0.0.0", "src/31": "192.0.2.254", "src/32": "192.0.2.255", "dst/33": "2001:db8:8000::", "dst/64": "2001:db8:ffff:ffff::",
		"dst/65": "2001:db8:ffff:ffff:8000::", "dst/127": "2001:db8:ffff:ffff:ffff:ffff:ffff:fffe", "dst/128": "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "src": "192.0.2.255"} {
		tuple, err := ParseTuple(text)
		if err != nil {
			t.Fatal(err)
		}
		w := WordsOf(&packet.Packet{Src: netip.MustParseAddr("192.0.2.255"), Dst: netip.MustParseAddr("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff")}, 0, 0)
		if got := tuple.Name(w.And(&tuple.Mask), nil); got != text[:3]+"="+want+text[3:] {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if short := strings.HasPrefix(text, "src/"); tuple.ipv4 != short || tuple.ipv6 != (!short && text != "src") {
			t.Errorf("%s: IPv4 %v, IPv6 %v", text, tuple.ipv4, tuple.ipv6)
		}
	}
	for _, text := range []string{"src/0", "src/129", "dst/x", "sport/8", "x", ""} {
		if _, err := ParseTuple(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
