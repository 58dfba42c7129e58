package beaucoup

import (
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// collectorBytes is what a collector occupies: its window's end, the key's checksum, the coupons.
const collectorBytes = 4 + 4 + 8

// keysExponent: L packets hold about L^0.8 keys (section 4.5.2, 0.7 to 0.85 on the paper's trace).
const keysExponent = 0.8

// plan compiles the queries and tells what to expect of them (section 4.3).
func plan(a algo.PlanArgs) (*report.Body, error) {
	if !(a.RatePerSecond > 0) {
		return nil, fmt.Errorf("plan beaucoup: --rate, packets a second, must be positive")
	}
	c, err := newConfig(a.Values, algo.Env{})
	if err != nil {
		return nil, err
	}
	p, err := Compile(c.queries, c.options)
	if err != nil {
		return nil, err
	}
	table := report.Table{Name: "queries", Title: "Queries", Limit: MaxQueries, Columns: []report.Column{
		{Name: "query", Label: true}, {Name: "threshold", Unit: report.Count}, {Name: "m", Unit: report.Count},
		{Name: "n", Unit: report.Count}, {Name: "p"}, {Name: "survival", Unit: report.Ratio},
		{Name: "expected_count", Unit: report.Count}, {Name: "bias", Unit: report.Ratio},
		{Name: "relative_error", Unit: report.Ratio}, {Name: "collectors", Unit: report.Count},
	}}
	drawn, collectors := 0.0, 0.0
	for i := range p.Queries {
		q := &p.Queries[i]
		e := p.Effective(q)
		t := float64(q.Threshold)
		keys := math.Pow(q.rate()*a.RatePerSecond*q.Window.Seconds(), keysExponent)
		drawn += q.rate()
		collectors += keys
		table.Rows = append(table.Rows, []any{q.Name, int64(q.Threshold), int64(q.Collector.M), int64(q.Collector.N), q.Collector.P,
			p.attributes[q.attribute].Survival, e.Draws(), e.Draws()/t - 1, e.Error(t), keys})
	}
	b := &report.Body{Values: []report.Value{
		gauge("coupons_a_packet", drawn, report.None, "coupons drawn a packet, at most"),
		gauge("accesses_a_packet", 3*drawn, report.None, "accesses to the three registers"),
		gauge("attributes", len(p.attributes), report.Count, "hashes a packet"),
		gauge("steps", p.steps, report.Count, "entries of the table of coupons, of 65536"),
		gauge("collectors", collectors, report.Count, "collectors at a time, by the power law of section 4.5.2"),
		gauge("memory", entriesFor(collectors)*collectorBytes, report.Bytes, "for twice as many, so that few collide"),
		gauge("entries", entriesFor(collectors), report.Count, "set beaucoup.entries"),
	}, Tables: []report.Table{table}}
	if need := entriesFor(collectors) * collectorBytes; need > a.MemoryBytes {
		b.Notes = append(b.Notes, fmt.Sprintf("--memory %d bytes are less than the %d that few collisions take: lower beaucoup.budget or shorten windows", a.MemoryBytes, need))
	}
	if need := float64(entriesFor(collectors)); need < 2*collectors {
		b.Notes = append(b.Notes, fmt.Sprintf("there is room for %.0f collectors and this traffic may want %.0f: many coupons will be lost to collisions; "+
			"lower beaucoup.budget or shorten windows", need, collectors))
	}
	return b, nil
}

func entriesFor(collectors float64) int64 {
	n := int64(16)
	for float64(n) < 2*collectors && n < 65536 {
		n *= 2
	}
	return n
}
