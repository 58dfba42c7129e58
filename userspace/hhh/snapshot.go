package hhh

import (
	"cmp"
	"maps"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/hhh"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// The words of a snapshot: counters, and a heavy.Table and the exact counts of 8 bits, or the levels of stacking.
const (
	firstWords   = "first" // by the first byte of an address, those of IPv6 last
	counterWords = "counters"
	nodeWords    = "nodes" // nodeWidth per prefix: first 64 bits of its addresses, length, count; in order
	stackWords   = "stack" // records, smallest
)

const nodeWidth = 3

// mostCounted bounds a count: sums of them do not wrap.
const mostCounted = 1 << 56

func (l *levels) into(s *snapshot.Snapshot) {
	order := slices.SortedFunc(maps.Keys(l.counts), func(a, b node) int {
		return cmp.Or(cmp.Compare(a.bits, b.bits), cmp.Compare(a.high, b.high))
	})
	w := make(snapshot.Words, 0, nodeWidth*len(order))
	for _, at := range order {
		w = append(w, at.high, uint64(at.bits), l.counts[at])
	}
	s.Words[nodeWords] = w
	s.Words[stackWords] = snapshot.Floats([]float64{float64(l.records), l.smallest})
}

func (s *stack) levelsOf(r *snapshot.Reader) *levels {
	state := r.Floats(stackWords, 2)
	l := &levels{counts: map[node]uint64{}, records: int(state[0]), smallest: state[1]}
	if min(state[0], state[1]) < 0 || max(state[0], state[1]) > mostCounted {
		r.Refuse("a stack's state of %g", state)
	}
	for _, w := range r.Rows(nodeWords, nodeWidth) {
		bits := int(min(w[1], 128))
		if bits%s.step != 0 || bits < s.step || bits > s.stackFirst()+(s.stackLevels()-1)*s.step || w[2] > mostCounted || stackPrefix(w[0], bits) != w[0] {
			r.Refuse("a prefix of %d bits, %x", w[1], w[0])
			return l
		}
		l.counts[node{w[0], bits}] += w[2]
	}
	return l
}

// open reads the arrays' content; roots are counted exactly.
func (c *config) open(s *snapshot.Snapshot) (n counts, out seen, err error) {
	r := s.Read()
	n = r.Words(counterWords, int(bpf.HhhHhhCounterHHH_COUNTS))
	if c.stacking {
		stack := stack{config: c}
		out = stack.seen(stack.levelsOf(r), s.Parts)
	} else if t := heavy.TableOf(r); c.whole {
		out = c.wholeOf(t)
	} else {
		out = c.drawn(t, n)
	}
	c.addFirst(out, c.firstOf(r))
	c.roots(out.estimates, n.at(bpf.HhhHhhCounterHHH_IPV4), n.at(bpf.HhhHhhCounterHHH_IPV6))
	return n, out, r.Err()
}

// Report implements algo.Config.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	n, seen, err := c.open(s)
	if err != nil {
		return algo.Result{}, err
	}
	asked, written := n.at(bpf.HhhHhhCounterHHH_ADMITTED), n.at(bpf.HhhHhhCounterHHH_WRITTEN)
	return algo.Result{
		Body:     c.body(n, seen),
		Used:     n.at(bpf.HhhHhhCounterHHH_PACKETS),
		Segments: true,
		Lost: map[string]uint64{
			"other_family":          n.at(bpf.HhhHhhCounterHHH_NO_KEY),
			"recirculation_refused": asked - min(asked, written),
		},
	}, nil
}

// Merge implements algo.Merger: it sums the entries' counts, whatever the seeds: prefixes are stored whole. The bounds add up; those of a prefix that a host has no
// entry for include what that host may have missed.
func (c *config) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	for _, s := range []*snapshot.Snapshot{a, b} {
		if _, _, err := c.open(s); err != nil {
			return nil, err
		}
	}
	s, x, y := snapshot.Together(a, b), a.Read(), b.Read()
	s.Words[counterWords] = snapshot.Sum(a.Words[counterWords], b.Words[counterWords])
	if !c.stacking {
		heavy.TableOf(x).Plus(heavy.TableOf(y), a.Parts, b.Parts).Into(s)
		if c.exact > 0 {
			s.Words[firstWords] = snapshot.Sum(a.Words[firstWords], b.Words[firstWords])
		}
		return s, nil
	}
	stack := stack{config: c}
	l, other := stack.levelsOf(x), stack.levelsOf(y)
	for at, n := range other.counts {
		l.counts[at] += n
	}
	l.records, l.smallest = l.records+other.records, l.smallest+other.smallest
	l.into(s)
	return s, nil
}
