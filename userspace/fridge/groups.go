package fridge

import (
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/group"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// groupRow is one group of a window, estimated or true.
type groupRow struct {
	name      string
	row       int // in the data plane; 0: not known, or of group.Others
	samples   float64
	estimated float64
	p50, p95  float64
	count     delay.Enclosure // of estimated
	p50in     delay.Enclosure
	p95in     delay.Enclosure
	judged    delay.Judgement
	shut      uint64 // zero windows
}

func (e *estimator) estimatedGroups(all spectra) []groupRow {
	var out []groupRow
	for row, s := range all.rows {
		g := groupRow{name: group.Others, samples: s.Samples(), estimated: s.Count(), shut: all.shutOf(row)}
		if g.samples == 0 && g.shut == 0 {
			continue
		}
		if row > 0 {
			g.name = e.group.Name(all.owners[row])
			if !all.merged { // hosts have rows of their own
				g.row = row
			}
		}
		g.count = s.CountBounds()
		g.p50, g.p50in = s.Percentile(0.5)
		g.p95, g.p95in = s.Percentile(0.95)
		if e.sla != nil {
			g.judged = e.sla.Judge(s)
		}
		out = append(out, g)
	}
	return out
}

// verdictOrder lists broken agreements first, kept ones last.
var verdictOrder = []string{delay.Broken, delay.Undecided, delay.Kept}

// groupTable lists the groups: with an agreement those that break it first, else the slowest first.
func (c *config) groupTable(rows []groupRow) report.Table {
	slices.SortStableFunc(rows, func(a, b groupRow) int {
		if va, vb := slices.Index(verdictOrder, a.judged.Verdict), slices.Index(verdictOrder, b.judged.Verdict); va != vb {
			return va - vb
		}
		if c.sla != nil && a.judged.Low != b.judged.Low {
			return descending(a.judged.Low, b.judged.Low)
		}
		return descending(a.p95, b.p95)
	})
	t := report.Table{Name: "groups", Title: c.group.Title(), Columns: c.groupColumns(), Limit: c.rows,
		Help: "delays " + c.group.Title()}
	for _, g := range rows {
		t.Rows = append(t.Rows, c.groupCells(g))
	}
	return t
}

// descending compares numbers, largest first and NaN last.
func descending(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b) || a == b:
		return 0
	case math.IsNaN(b) || a > b:
		return -1
	}
	return 1
}

func (c *config) groupColumns() []report.Column {
	columns := []report.Column{
		{Name: "group", Label: true, Help: c.group.Title()},
		{Name: "matched", Unit: report.Responses, Help: "responses that found their request: the raw samples"},
		{Name: "estimated", Unit: report.Requests, Metric: true, Help: "answered requests, corrected", Low: "estimated_low", High: "estimated_high"},
		{Name: "p50_ns", Unit: report.Nanosecond, Metric: true, Help: "median of the delay", Low: "p50_low_ns", High: "p50_high_ns"},
		{Name: "p95_ns", Unit: report.Nanosecond, Metric: true, Help: "95th percentile of the delay; - with fewer than 10 effective samples",
			Low: "p95_low_ns", High: "p95_high_ns"},
	}
	if c.shuts() {
		columns = append(columns, report.Column{Name: "zero_windows", Unit: report.Count, Metric: true, Help: zeroWindowsHelp})
	}
	if c.sla != nil {
		columns = append(columns,
			report.Column{Name: "over", Unit: report.Ratio, Metric: true, Help: "share of responses beyond the agreed delay", Low: "over_low", High: "over_high"},
			report.Column{Name: "over_low", Unit: report.Ratio, Help: "95 % confidence: at least"},
			report.Column{Name: "over_high", Unit: report.Ratio, Help: "95 % confidence: at most"},
			report.Column{Name: "sla", Help: "broken or kept with 95 % confidence, or too few to decide"},
			report.Column{Name: "confidence", Unit: report.Ratio, Help: "that the agreement is broken"},
		)
	}
	for _, end := range []struct {
		name, of string
		unit     report.Unit
	}{{"estimated", "", report.Requests}, {"p50", "_ns", report.Nanosecond}, {"p95", "_ns", report.Nanosecond}} {
		columns = append(columns,
			report.Column{Name: end.name + "_low" + end.of, Unit: end.unit, Help: "95 % confidence: at least; - when nothing can be promised"},
			report.Column{Name: end.name + "_high" + end.of, Unit: end.unit, Help: "95 % confidence: at most"})
	}
	return append(columns, report.Column{Name: "row", Unit: report.Count, JSON: true, Help: "row of the group; a group that finds its row taken in a window is counted under others. 0: others, several hosts, or exact counts"})
}

func (c *config) groupCells(g groupRow) []any {
	cells := []any{g.name, uint64(math.Round(g.samples)), g.estimated, g.p50, g.p95}
	if c.shuts() {
		cells = append(cells, g.shut)
	}
	if c.sla != nil {
		j := g.judged
		cells = append(cells, j.Over, j.Low, j.High, j.Verdict, j.Confidence)
	}
	for _, e := range []delay.Enclosure{g.count, g.p50in, g.p95in} {
		if math.IsInf(e.High, 1) || e == (delay.Enclosure{}) {
			e.Low, e.High = math.NaN(), math.NaN()
		}
		cells = append(cells, e.Low, e.High)
	}
	return append(cells, g.row)
}
