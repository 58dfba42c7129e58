package fridge

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// model of traffic that knows its truth.
type model interface {
	traffic.Model
	Truth() *traffic.Truth
}

// trace makes the same model again and again.
type trace func() (model, error)

// isp is the model of section 5 with a number of packets, 10 million being 11.4 s.
func isp(packets int) trace {
	return func() (model, error) { return traffic.NewISP(traffic.ISPOptions{Packets: packets, Seed: 5}) }
}

// outcome of one configuration over the hash seeds.
type outcome struct {
	runs    []report.Distribution
	matched []float64 // raw samples
}

// measured is what configurations made of a trace.
type measured struct {
	truth    truth
	outcomes []*outcome // in the order of the configurations
}

// measure replays a trace with every hash seed through every configuration, sixteen in a chain.
func measure(ctx context.Context, tr trace, seeds []uint64, configs []bytecode.Config) (*measured, error) {
	m := &measured{outcomes: make([]*outcome, len(configs))}
	for i := range m.outcomes {
		m.outcomes[i] = &outcome{runs: make([]report.Distribution, len(seeds)), matched: make([]float64, len(seeds))}
	}
	batches := bytecode.Batches(len(configs))
	var once sync.Once
	err := bytecode.Parallel(ctx, len(seeds)*len(batches), func(ctx context.Context, i int) error {
		seed, batch := i%len(seeds), batches[i/len(seeds)]
		traffic, err := tr()
		if err != nil {
			return err
		}
		if err := m.replay(ctx, traffic, seeds[seed], seed, batch[0], configs[batch[0]:batch[1]]); err != nil {
			return err
		}
		once.Do(func() { m.truth = newTruth(traffic.Truth().Delays) })
		return nil
	})
	return m, err
}

// replay fills in the outcomes of one seed from the configuration numbered first on.
func (m *measured) replay(ctx context.Context, tr model, seed uint64, n, first int, configs []bytecode.Config) error {
	lines, err := bytecode.Replay(ctx, traffic.Frames(tr), seed, configs)
	if err != nil {
		return err
	}
	for i, l := range lines {
		d, err := bytecode.Distribution(l, "delay_ns")
		if err != nil {
			return err
		}
		if torn := l.Lost["torn"]; torn > 0 {
			return fmt.Errorf("replay %s: %d torn records on one core", l.Algorithm, torn)
		}
		m.outcomes[first+i].runs[n] = d
		m.outcomes[first+i].matched[n] = value(l, "matched")
	}
	return nil
}

// value of a report, by name; a program that does not report it is a fault of this package.
func value(l report.Line, name string) float64 {
	i := slices.IndexFunc(l.Report.Values, func(v report.Value) bool { return v.Name == name })
	f, _ := report.Number(l.Report.Values[i].Value)
	return f
}

// seeds of hashes: n different ones; other sets for other uses.
func seeds(n int, set uint64) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = (uint64(i) + 1 + set<<16) * 0x9e3779b97f4a7c15
	}
	return list
}

// fridges is the configuration of a fridge. Legs are left out: the naive arrays have none.
func fridges(layout, match string, more ...string) bytecode.Config {
	set := map[string]string{"fridges": layout, "match": match, "legs": "false"}
	for i := 0; i+1 < len(more); i += 2 {
		set[more[i]] = more[i+1]
	}
	return bytecode.Config{Algorithm: "fridge", Set: set}
}

// array is the configuration of a naive array.
func array(entries, stages int, evict, match string, more ...string) bytecode.Config {
	set := map[string]string{"entries": fmt.Sprint(entries), "stages": fmt.Sprint(stages), "evict": evict, "match": match}
	for i := 0; i+1 < len(more); i += 2 {
		set[more[i]] = more[i+1]
	}
	return bytecode.Config{Algorithm: "rtt-array", Set: set}
}
