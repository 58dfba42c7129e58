package precision

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"

	"github.com/xdpmon/xdpmon/tests/eval"
	"github.com/xdpmon/xdpmon/tests/eval/figure"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	_ "github.com/xdpmon/xdpmon/userspace/hhh" // registers what is evaluated
	"github.com/xdpmon/xdpmon/userspace/report"
)

// threshold from which on a prefix is heavy, as a share.
const threshold = 1. / 200

var methods = []string{"random-prefix", "stacking", "RHHH", "MST"}

// verdict sums up over seeds: prefixes above twice the threshold, how many were found, and their relative errors.
type verdict struct{ heavy, found, off, worst float64 }

// hierarchy compares what is found of the prefixes above twice the threshold (figure 3.8).
func hierarchy(ctx context.Context, p *eval.Page) error {
	p.Text("The model's sources, bytes of IPv4, threshold %.1f %%, initial value 10, d = 2. Of the prefixes whose conditioned count is above "+
		"twice the threshold: share that was found, mean and largest relative error of their counts. RHHH and MST are Go references with a "+
		"Space-Saving of a quarter of the entries a level.", 100*threshold)
	results := map[string][]verdict{}
	seeds := eval.Pick(p, 3, 1)
	for _, m := range methods {
		results[m] = make([]verdict, len(sizes))
	}
	for seed := range uint64(seeds) {
		shape := precision.Issue(seed + 1)
		shape.Packets = eval.Pick(p, shape.Packets, 20000)
		stream := shape.New()
		truth := exactPrefixes(stream)
		for s, entries := range sizes {
			for _, m := range methods {
				found, err := prefixes(ctx, m, entries, stream, seed+1)
				if err != nil {
					return err
				}
				results[m][s].judge(truth, found, threshold*float64(len(stream.Order)))
			}
		}
	}
	t := &figure.Table{Columns: []string{"entries"}}
	for _, entries := range sizes {
		t.Columns = append(t.Columns, fmt.Sprint(entries))
	}
	for _, m := range methods {
		row := []string{m}
		for s := range sizes {
			v := results[m][s]
			row = append(row, fmt.Sprintf("%.3f; %.3f; %.2f", v.found/v.heavy, v.off/max(v.found, 1), v.worst))
		}
		t.Add(row...)
	}
	p.Table(t)
	last := len(sizes) - 1
	random, stacked := results["random-prefix"][last], results["stacking"][last]
	p.Bar(fmt.Sprintf("random prefix, %d entries: prefixes above twice the threshold", sizes[last]), "all found, counts within 2 times",
		fmt.Sprintf("%.0f of %.0f, largest error %.0f %%", random.found, random.heavy, 100*random.worst), random.found == random.heavy && random.worst < 1)
	p.Text("The mean error of random prefixes is %.1f times that of stacking at %d entries: a level is drawn for every packet, and sqrt(3 / packets) "+
		"of a prefix's share is lost to chance whatever the memory.", (random.off/random.found)/(stacked.off/stacked.found), sizes[last])
	return nil
}

func (v *verdict) judge(truth []heavy.Heavy, found map[string]float64, least float64) {
	for _, h := range truth {
		if h.Conditioned < 2*least {
			continue
		}
		v.heavy++
		if n, ok := found[h.Prefix.String()]; ok {
			v.found++
			off := math.Abs(n/h.Count - 1)
			v.off += off
			v.worst = max(v.worst, off)
		}
	}
}

func exactPrefixes(stream *precision.Stream) []heavy.Heavy {
	counts := map[heavy.Prefix]float64{}
	for _, rank := range stream.Order {
		src := stream.Packet(rank, 1).Src
		for bits := 0; bits <= 32; bits += 8 {
			counts[heavy.Prefix{Src: netip.PrefixFrom(src, bits).Masked()}]++
		}
	}
	return heavy.Hierarchical(counts, threshold*float64(len(stream.Order)))
}

// prefixes that a method reports, by name.
func prefixes(ctx context.Context, method string, entries int, stream *precision.Stream, seed uint64) (map[string]float64, error) {
	if method == "RHHH" || method == "MST" {
		return references(method, entries, stream, seed), nil
	}
	lines, err := eval.Replay(ctx, traffic.Frames(stream.Model()), seed, []eval.Config{{Algorithm: "hhh", Set: map[string]string{
		"method": method, "entries": fmt.Sprint(entries), "threshold": fmt.Sprint(threshold), "initial": "10", "ways": "2", "family": "4", "top": "1000"}}})
	if err != nil {
		return nil, err
	}
	return rowsOf(lines[0].Report), nil
}

func rowsOf(b report.Body) map[string]float64 {
	found := map[string]float64{}
	for _, row := range b.Tables[0].Rows {
		found[row[0].(string)] = row[1].(float64)
	}
	return found
}

func references(method string, entries int, stream *precision.Stream, seed uint64) map[string]float64 {
	rng := rand.New(rand.NewPCG(seed, 5))
	m := heavy.NewMST(entries)
	if method == "RHHH" {
		m = heavy.NewRHHH(entries, func() int { return rng.IntN(4) })
	}
	for _, rank := range stream.Order {
		m.Add(stream.Packet(rank, 1).Src)
	}
	found := map[string]float64{}
	for _, h := range heavy.Hierarchical(m.Counts(), threshold*float64(len(stream.Order))) {
		found[h.Prefix.String()] = h.Count
	}
	return found
}
