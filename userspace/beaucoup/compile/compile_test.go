package compile

import (
	"errors"
	"strings"
	"testing"
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

// What queries of large thresholds do not need goes to those of small ones (section 4.6); what they draw in the mean is the
// threshold within 5 %, behind ties.
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
