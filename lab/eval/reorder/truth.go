package reorder

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/reorder"
)

const (
	alpha = 16
	beta  = 128
)

// epsilon by definition.
var epsilon = [3]float64{1: 0.01, 2: 0.02}

// tallied is what was counted of a flow or a prefix.
type tallied struct {
	n   float64
	out [3]float64 // by definition
}

func (t *tallied) add(v reorder.Verdict) {
	t.n++
	for d := 1; d <= 2; d++ {
		if v.Out[d] {
			t.out[d]++
		}
	}
}

func (t *tallied) heavy(definition int) bool {
	return t.out[definition] > epsilon[definition]*t.n
}

// truth is the exact count of a trace.
type truth struct {
	flows    []*tallied
	of       []netip.Prefix // of a flow
	last     []int64        // time of a flow's last packet
	prefixes map[netip.Prefix]*tallied
	members  map[netip.Prefix][]uint32 // flows
	total    tallied
	gaps     [3]histogram // inter-arrival times: in order, out of order by definition
}

func newTruth() *truth {
	return &truth{prefixes: map[netip.Prefix]*tallied{}, members: map[netip.Prefix][]uint32{}}
}

func (t *truth) add(v reorder.Verdict, p *packet.Packet) error {
	if int(v.Flow) == len(t.flows) {
		bits := 24
		if p.Src.Is6() {
			bits = 48
		}
		prefix, err := p.Src.Prefix(bits)
		if err != nil {
			return fmt.Errorf("read prefix of %v: %w", p.Src, err)
		}
		if t.prefixes[prefix] == nil {
			t.prefixes[prefix] = &tallied{}
		}
		t.flows, t.of, t.last = append(t.flows, &tallied{}), append(t.of, prefix), append(t.last, p.Time)
		t.members[prefix] = append(t.members[prefix], v.Flow)
	}
	t.flows[v.Flow].add(v)
	t.prefixes[t.of[v.Flow]].add(v)
	t.total.add(v)
	t.gap(v, p.Time)
	return nil
}

// gap notes how long after its predecessor a packet arrived.
func (t *truth) gap(v reorder.Verdict, now int64) {
	since := float64(now-t.last[v.Flow]) / 1e9
	t.last[v.Flow] = now
	switch {
	case !v.Compared:
	case !v.Out[1] && !v.Out[2]:
		t.gaps[0].add(since)
	default:
		for d := 1; d <= 2; d++ {
			if v.Out[d] {
				t.gaps[d].add(since)
			}
		}
	}
}

// heavy are the prefixes in trouble with at least least packets.
func (t *truth) heavy(definition int, least float64) map[string]bool {
	set := map[string]bool{}
	for name, g := range t.prefixes {
		if g.n >= least && g.heavy(definition) {
			set[name.String()] = true
		}
	}
	return set
}

const drawn = 5000 // flows for one coefficient

// correlation of section 4.1.2: a flow's share with that of the rest of its prefix, over draws of 5,000 flows of prefixes
// with more than alpha packets and at least two flows. Mean and variance over draws; NaN without such flows.
func (t *truth) correlation(definition, draws int) (mean, variance float64) {
	eligible := t.eligible()
	if len(eligible) == 0 {
		return math.NaN(), math.NaN()
	}
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]float64, draws)
	x, y := make([]float64, drawn), make([]float64, drawn)
	for n := range all {
		for i := range x {
			id := eligible[rng.IntN(len(eligible))]
			f, g := t.flows[id], t.prefixes[t.of[id]]
			x[i] = f.out[definition] / f.n
			y[i] = (g.out[definition] - f.out[definition]) / (g.n - f.n)
		}
		all[n] = pearson(x, y)
	}
	s := spreadOf(all)
	return s.mean, s.deviation * s.deviation
}

func (t *truth) eligible() (list []uint32) {
	for id, prefix := range t.of {
		if t.prefixes[prefix].n > alpha && len(t.members[prefix]) >= 2 {
			list = append(list, uint32(id))
		}
	}
	return list
}

func pearson(x, y []float64) float64 {
	var sx, sy, sxx, syy, sxy float64
	n := float64(len(x))
	for i := range x {
		sx, sy = sx+x[i], sy+y[i]
		sxx, syy, sxy = sxx+x[i]*x[i], syy+y[i]*y[i], sxy+x[i]*y[i]
	}
	return (sxy/n - sx*sy/n/n) / math.Sqrt((sxx/n-sx*sx/n/n)*(syy/n-sy*sy/n/n))
}

// largest lists sizes of flows or prefixes, largest first.
func largest(sizes []float64) []float64 {
	slices.SortFunc(sizes, func(a, b float64) int {
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	return sizes
}
