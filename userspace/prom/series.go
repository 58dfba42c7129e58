package prom

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Series is the number of series of a scrape, counted as Prometheus does: every bucket of a classic histogram, its sum and its count.
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
