package fridge

import (
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/fridge/samples"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// sampler is an instance that reads single samples.
type sampler struct {
	*instance
	*samples.Stream
}

// Bind implements algo.Instance.
func (s *sampler) Bind(set *maps.Set) error {
	if err := s.instance.Bind(set); err != nil {
		return err
	}
	return s.Stream.Bind(set)
}

// Read implements algo.Instance.
func (s *sampler) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	out, err := s.instance.Read(w, bank)
	if err != nil {
		return nil, err
	}
	sent, err := s.Stream.Read(w.End, bank)
	if err != nil {
		return nil, err
	}
	sent.Into(out)
	return out, nil
}

// sampling is the form of single samples.
func (c *config) sampling() samples.Form {
	return samples.Form{Listed: c.samples, Tick: c.tick, Longest: c.rules.Longest, Parts: c.planes()}
}

// weigh calculates the weights of a window's samples: 1/q, with the p and the size of the fridge that each was admitted to.
func (e *estimator) weigh(list []samples.Sample) {
	for i := range list {
		s := &list[i]
		x := float64(s.X)
		if !e.recorded {
			x = e.rates.survived(s.Part, float64(s.Delay))
		}
		parts, k := e.admittedWith(s.Part)
		s.Weight = e.rates.factorOf(parts, k).Weight(x)
	}
}
