package reorder

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/reorder"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	second = time.Second
	alpha  = 16
	beta   = 128
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

// truth is the exact count of a trace.
type truth struct {
	flows    map[uint32]*tallied
	of       map[uint32]netip.Prefix
	prefixes map[netip.Prefix]*tallied
	members  map[netip.Prefix]int
	total    tallied
}

func measure(o traffic.ReorderOptions) (*truth, error) {
	m, err := traffic.NewReorder(o)
	if err != nil {
		return nil, err
	}
	t := &truth{flows: map[uint32]*tallied{}, of: map[uint32]netip.Prefix{}, prefixes: map[netip.Prefix]*tallied{}, members: map[netip.Prefix]int{}}
	tracker := reorder.NewTracker()
	var p packet.Packet
	for m.Next(&p) {
		prefix, err := p.Src.Prefix(24)
		if err != nil {
			return nil, fmt.Errorf("read prefix of %v: %w", p.Src, err)
		}
		v, _ := tracker.Packet(&p)
		t.add(v, prefix)
	}
	return t, nil
}

func (t *truth) add(v reorder.Verdict, prefix netip.Prefix) {
	f := t.flows[v.Flow]
	if f == nil {
		f = &tallied{}
		t.flows[v.Flow], t.of[v.Flow] = f, prefix
		t.members[prefix]++
	}
	g := t.prefixes[prefix]
	if g == nil {
		g = &tallied{}
		t.prefixes[prefix] = g
	}
	f.add(v)
	g.add(v)
	t.total.add(v)
}

// heavy are the prefixes in trouble with at least least packets.
func (t *truth) heavy(definition int, least float64) map[string]bool {
	set := map[string]bool{}
	for name, g := range t.prefixes {
		if g.n >= least && g.out[definition] > epsilon[definition]*g.n {
			set[name.String()] = true
		}
	}
	return set
}

// score is what section 4.2 measures.
type score struct{ accuracy, wrong, sent, twice float64 }

func (t *truth) judge(l report.Line, definition int) score {
	want, allowed := t.heavy(definition, beta), t.heavy(definition, alpha+1)
	found, wrong := 0, 0
	for _, row := range l.Report.Tables[0].Rows {
		name, _ := row[0].(string)
		if want[name] {
			found++
		}
		if !allowed[name] {
			wrong++
		}
	}
	s := score{accuracy: float64(found) / float64(len(want)), wrong: float64(wrong) / float64(len(allowed))}
	for _, v := range l.Report.Values {
		f, _ := report.Number(v.Value)
		switch v.Name {
		case "communication":
			s.sent = f
		case "recirculation":
			s.twice = f
		}
	}
	return s
}

// correlation of section 4.1.2: a flow's share with that of the rest of its prefix, over draws of 5,000 flows of prefixes
// with more than alpha packets and at least two flows.
func (t *truth) correlation(definition, draws int) float64 {
	var eligible []uint32
	for id := range uint32(len(t.flows)) {
		if prefix := t.of[id]; t.prefixes[prefix].n > alpha && t.members[prefix] >= 2 {
			eligible = append(eligible, id)
		}
	}
	rng, mean := rand.New(rand.NewPCG(1, 2)), 0.0
	for range draws {
		x, y := make([]float64, 5000), make([]float64, 5000)
		for i := range x {
			id := eligible[rng.IntN(len(eligible))]
			f, g := t.flows[id], t.prefixes[t.of[id]]
			x[i] = f.out[definition] / f.n
			y[i] = (g.out[definition] - f.out[definition]) / (g.n - f.n)
		}
		mean += pearson(x, y) / float64(draws)
	}
	return mean
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
