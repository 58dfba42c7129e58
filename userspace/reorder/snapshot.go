package reorder

import (
	"cmp"
	"maps"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/reorder"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// The words of a snapshot.
const (
	counterWords = "counters"
	tornWords    = "torn"
	flowWords    = "flows" // flowWidth a flow: prefix, signature, packets, out-of-order packets, reports; in order
)

const flowWidth = 5

// mostCounted bounds the counts of a row, so that sums of rows do not overflow: years of packets.
const mostCounted = 1 << 48

func (f flows) words() snapshot.Words {
	order := slices.SortedFunc(maps.Keys(f), func(a, b flow) int {
		return cmp.Or(cmp.Compare(a.prefix, b.prefix), cmp.Compare(a.signature, b.signature))
	})
	w := make(snapshot.Words, 0, flowWidth*len(order))
	for _, at := range order {
		s := f[at]
		w = append(w, at.prefix, uint64(at.signature), s.n, s.o, s.reports)
	}
	return w
}

// open reads the counters and adds up the flows.
func (c *config) open(s *snapshot.Snapshot) (counts, *tally, error) {
	r, t := s.Read(), newTally(c)
	n := counts(r.Words(counterWords, int(bpf.ReorderReorderCounterREORDER_COUNTS)))
	r.Words(tornWords, 1)
	for _, w := range r.Rows(flowWords, flowWidth) {
		if w[1] > math.MaxUint32 || max(w[2], w[3], w[4]) > mostCounted {
			r.Refuse("a flow %x of prefix %x with %d of %d packets out of order", w[1], w[0], w[3], w[2])
			break
		}
		t.add(flow{w[0], uint32(w[1])}, sum{n: w[2], o: w[3], reports: w[4]})
	}
	return n, t, r.Err()
}

// Report implements algo.Config.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	n, t, err := c.open(s)
	if err != nil {
		return algo.Result{}, err
	}
	return algo.Result{Body: c.body(n, t, t.output()), Used: n.at(bpf.ReorderReorderCounterREORDER_PACKETS), Segments: true, Lost: n.lost(s.Words[tornWords][0])}, nil
}

// Merge implements algo.Merger: it sums the counts of hosts. That is correct where each flow takes one path: if a flow is spread over two hosts, each
// sees gaps where the other saw packets, which a sum of registers cannot correct. Seeds may differ, since flows of different hosts are counted as
// different flows.
func (c *config) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	for _, s := range []*snapshot.Snapshot{a, b} {
		if _, err := c.Report(s); err != nil {
			return nil, err
		}
	}
	s, f := snapshot.Together(a, b), flows{}
	for _, part := range []*snapshot.Snapshot{a, b} {
		for _, w := range part.Read().Rows(flowWords, flowWidth) {
			at := flow{w[0], uint32(w[1])}
			of := f[at]
			if of == nil {
				of = &sum{}
				f[at] = of
			}
			of.n, of.o, of.reports = of.n+w[2], of.o+w[3], of.reports+w[4]
		}
	}
	s.Words[flowWords] = f.words()
	for _, name := range []string{counterWords, tornWords} {
		s.Words[name] = snapshot.Sum(a.Words[name], b.Words[name])
	}
	return s, nil
}
