package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Cardinality is how many series a window makes.
type Cardinality struct {
	Series  int // without what follows
	Buckets int // of classic histograms; a native histogram is one series
	Rows    int // of tables that are named by traffic, at most
}

// CardinalityOf counts the series of one algorithm on one instance.
func CardinalityOf(l report.Line) (c Cardinality) {
	s := NewStore(time.Now)
	s.Add(l)
	all := s.Series()
	s.ServeHistograms(NativeHistograms)
	c.Series = s.Series()
	c.Buckets = all - c.Series
	for _, t := range l.Report.Tables {
		for _, column := range t.Columns {
			if column.Metric && !column.Label && !t.Settings {
				c.Rows += limitOf(t)
			}
		}
	}
	return c
}

// limitOf is how many rows a table shows at most.
func limitOf(t report.Table) int {
	if t.Limit > 0 {
		return t.Limit
	}
	return len(t.Rows)
}

// Series counts what a scrape serves now, as Prometheus counts: every bucket of a classic histogram, its sum and its count.
func (s *Store) Series() (n int) {
	ch := make(chan prometheus.Metric)
	go func() { s.Collect(ch); close(ch) }()
	for m := range ch {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			continue
		}
		n++
		if h := out.GetHistogram(); h != nil && len(h.GetBucket()) > 0 {
			n += len(h.GetBucket()) + 2
		}
	}
	return n
}
