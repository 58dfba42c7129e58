package names

import (
	"fmt"
	"time"

	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// cardinality is how many series a window of one algorithm on one instance makes.
type cardinality struct {
	series  int // without buckets and rows
	buckets int // of classic histograms; a native histogram is one series
	details int // with --metrics-details
	rows    int // of tables that are named by traffic, at most
}

func cardinalityOf(l report.Line) (c cardinality) {
	s := prom.NewStore(time.Now)
	s.Add(l)
	all := s.Series()
	s.ServeHistograms(prom.NativeHistograms)
	c.series = s.Series()
	c.buckets = all - c.series
	s.Details(true)
	c.details = s.Series() - c.series
	for _, t := range l.Report.Tables {
		for _, column := range t.Columns {
			if column.Metric && !column.Label && !t.Settings {
				c.rows += limitOf(t)
			}
		}
	}
	return c
}

// limitOf is the largest number of rows of a table.
func limitOf(t report.Table) int {
	if t.Limit > 0 {
		return t.Limit
	}
	return len(t.Rows)
}

// String is the sentence of docs/output.md.
func (c cardinality) String() string {
	text := fmt.Sprintf("Series of an instance: %d", c.series+c.buckets)
	if c.buckets > 0 {
		text += fmt.Sprintf(" (%d with native histograms)", c.series)
	}
	text += fmt.Sprintf("; with `--metrics-details` %d more", c.details)
	if c.rows > 0 {
		text += fmt.Sprintf("; with `--metrics-rows` at most %d more at a time", c.rows)
	}
	return text + "."
}
