package beaucoup

import (
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// collectorBytes is the memory of a collector: its window's end, the key's checksum, the coupons, and its tail.
func (c *config) collectorBytes() int64 {
	if c.total {
		return 4 + 4 + 8 + 8
	}
	return 4 + 4 + 8
}

// keysExponent: L packets hold about L^0.8 keys (section 4.5.2, 0.7 to 0.85 on the paper's trace).
const keysExponent = 0.8

// Plan implements algo.Planner: it compiles the queries and predicts their errors and memory (section 4.3).
func (c *config) Plan(a algo.PlanArgs) (*report.Body, error) {
	if !(a.RatePerSecond > 0) {
		return nil, fmt.Errorf("plan beaucoup: --rate, packets a second, must be positive")
	}
	p, err := c.program()
	if err != nil {
		return nil, err
	}
	table, drawn, collectors := planTable(p, a.RatePerSecond, c.collectorBytes())
	b := &report.Body{Values: []report.Value{
		gauge("coupons_per_packet", drawn, report.None, "coupons drawn a packet, at most"),
		gauge("accesses_per_packet", 3*drawn, report.None, "accesses to the three registers"),
		gauge("attributes", len(p.Attributes), report.Count, "hashes a packet"),
		gauge("steps", p.Steps, report.Count, "entries of the table of coupons, of 65536"),
		gauge("collectors", collectors, report.Count, "collectors at a time, by the power law of section 4.5.2"),
		gauge("memory", entriesFor(collectors)*c.collectorBytes(), report.Bytes, "for twice as many, so that few collide"),
		gauge("entries", entriesFor(collectors), report.Count, "set beaucoup.entries"),
	}, Tables: []report.Table{table}}
	b.Notes = append(doubts(p), memoryNotes(collectors, a.MemoryBytes, c.collectorBytes())...)
	return b, nil
}

// planTable has a row for each query; drawn is the coupons of all queries a packet, collectors the number they need at a time.
func planTable(p *compile.Program, rate float64, each int64) (table report.Table, drawn, collectors float64) {
	table = report.Table{Name: "queries", Title: "Queries", Whole: true, Limit: compile.MaxQueries, Columns: []report.Column{
		{Name: "query", Label: true, Help: "the query"}, {Name: "threshold", Unit: report.Count, Help: "T"},
		{Name: "m", Unit: report.Count, Help: "coupons of a collector"}, {Name: "n", Unit: report.Count, Help: "coupons for an alert"},
		{Name: "p", Help: "probability of each coupon"},
		{Name: "draws", Unit: report.Count, Help: "distinct attributes at which it alerts, on average"},
		{Name: "bias", Unit: report.Ratio, Help: "of that against the threshold"},
		{Name: "error", Unit: report.Ratio, Help: "mean relative error of an alert"},
		{Name: "memory", Unit: report.Bytes, Help: "of the collectors in its window"},
		{Name: "window", Unit: report.Nanosecond, Help: "W"},
		{Name: "survival", Unit: report.Ratio, Help: "share of its coupons that ties leave"},
		{Name: "collectors", Unit: report.Count, Help: "in its window"},
	}}
	for i := range p.Queries {
		q := &p.Queries[i]
		e, t := p.Effective(q), float64(q.Threshold)
		keys := math.Pow(q.Rate()*rate*q.Window.Seconds(), keysExponent)
		drawn += q.Rate()
		collectors += keys
		table.Rows = append(table.Rows, []any{q.Name, int64(q.Threshold), int64(q.Collector.M), int64(q.Collector.N), q.Collector.P,
			e.Draws(), e.Draws()/t - 1, e.Error(t), int64(math.Ceil(keys)) * each, int64(q.Window),
			p.Attributes[q.Group].Survival, keys})
	}
	return table, drawn, collectors
}

// guess is the mean relative error above which an alert is of little use.
const guess = 0.4

// doubts are notes on queries whose share of the budget is too small for their threshold.
func doubts(p *compile.Program) (notes []string) {
	for i := range p.Queries {
		q := &p.Queries[i]
		if e := p.Effective(q).Error(float64(q.Threshold)); e > guess {
			notes = append(notes, fmt.Sprintf("%s errs by %.0f %%: its alerts are guesses; raise its threshold or beaucoup.budget, "+
				"or run it with fewer others", q.Name, 100*e))
		}
	}
	return notes
}

func memoryNotes(collectors float64, memory, each int64) (notes []string) {
	if need := entriesFor(collectors) * each; need > memory {
		notes = append(notes, fmt.Sprintf("--memory %d bytes are less than the %d needed for few collisions: lower beaucoup.budget or shorten windows", memory, need))
	}
	if need := float64(entriesFor(collectors)); need < 2*collectors {
		notes = append(notes, fmt.Sprintf("the table holds %.0f collectors and this traffic may need %.0f: many coupons will be lost to collisions; "+
			"lower beaucoup.budget or shorten windows", need, collectors))
	}
	return notes
}

func entriesFor(collectors float64) int64 {
	n := int64(16)
	for float64(n) < 2*collectors && n < 65536 {
		n *= 2
	}
	return n
}
