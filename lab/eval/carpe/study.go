// Package carpe evaluates Carpe as section 5 of its paper does: figures 3 to 5, on a model of its traffic.
package carpe

import (
	"context"
	"math"
	"math/bits"

	"github.com/xdpmon/xdpmon/lab/eval"
)

func init() {
	eval.Register(&eval.Study{
		Name: "carpe", Title: "carpe: evaluation",
		Intro: `Section 5 of Harrison et al., "Carpe Elephants: Seize the Global Heavy Hitters", SPIN 2020: which flows have more packets than a
threshold in the whole network, told by how much was sent for it, and how much was held.

Traffic: the paper splits a trace that is not public among ten switches. Here 5,000,000 packets of 270,000 flows a window follow Zipf's law (1.0). A source prefix (256 of
them) prefers one switch: 95 % of a flow's packets come there, the others to its alternate. The paper prefers by source address; routes are of prefixes, and
groups are, too. The threshold is the flow at a percentile of that window: 270 flows are above the 99.9th, 27 above the 99.99th. 20 windows, each
with flows and entries of its own: nobody profits from what was counted before.

*carpe* and the *locality-agnostic* form (every flow counted, tau = epsilon T / 10, r = 1/10) sweep epsilon, carpe also s; *sampling* sweeps its rate; *report all* sends
every counter at the window's end. Each is given the cut (how many reports or samples make an elephant) that is best for its F1 over all windows.

*Bytes* are those of records as xdpmon's messages have them: 15 for a flow, and 3 more for what a report stands for; in frames of 1,400 bytes of records with 78 around them.
Carpe's hold hellos and updates, those of the first window dealt out over the 20. *State* is entries at a window's end, as a share of flows that
somebody has who counts all.

The sweeps are of a model of flows, one by one: without collisions a flow does not know of others. *Packet for packet* holds it against the real programs and the coordinator's part.`,
		Sections: []eval.Section{
			{Name: "accuracy", Title: "Accuracy and bytes (figures 3 to 5)", Run: accuracy},
			{Name: "bytecode", Title: "Packet for packet, through the bytecode", Run: packetByPacket},
			{Name: "flatter", Title: "Flatter traffic, and what goes elsewhere", Run: flatter},
			{Name: "agents", Title: "From 10 to 1,000 hosts", Run: agents},
		},
	})
}

var percentiles = []float64{.9999, .999}

// windows of a network.
func windows(p *eval.Page, n network) (all []*window) {
	for seed := range eval.Pick(p, 20, 2) {
		all = append(all, n.window(uint64(seed)+1))
	}
	return all
}

// told is what observers of a group receive: how many they are, rounded down to a power of two.
func (n network) informed(w *window) func(int32) int {
	hosts := map[int32]map[int32]bool{}
	for _, p := range w.parts {
		g := w.group[p.flow]
		if hosts[g] == nil {
			hosts[g] = map[int32]bool{}
		}
		hosts[g][p.at] = true
	}
	informed := make([]int, n.groups)
	for g := range informed {
		informed[g] = 1 << (max(1, bits.Len(uint(len(hosts[int32(g)])))) - 1)
	}
	return func(g int32) int { return informed[g] }
}

// leastCut is where nobody cuts, as a share of the threshold: what is below is not sorted.
const leastCut = .25

// judge a method over all windows.
func (n network) judge(ctx context.Context, all []*window, m method, percentile float64) (score, error) {
	s := score{method: m}
	var flows []believe
	observed := make([]bool, n.groups*n.switches)
	elephants, reports := 0., 0.
	for seed, w := range all {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		threshold := float64(w.threshold(percentile))
		informed := func(int32) int { return n.switches }
		if m.locality {
			known := n.informed(w)
			informed = func(g int32) int { return m.most(threshold, known(g)) }
		}
		o := m.run(w, threshold, informed, uint64(seed)+100)
		for flow, b := range o.believed {
			elephant := float64(w.size[flow]) > threshold
			if elephant {
				elephants++
				if m.epsilon > 0 {
					reports += b / (m.epsilon * threshold)
				}
			}
			if b > leastCut*threshold || elephant {
				flows = append(flows, believe{b / threshold, elephant})
			}
		}
		for k, seen := range o.observed {
			observed[k] = observed[k] || seen
		}
		s.bytes += o.bytes / float64(len(all))
		s.records += o.records / float64(len(all))
		s.state += o.state / o.counted / float64(len(all))
	}
	if m.locality {
		hosts := 0.
		for _, seen := range observed {
			if seen {
				hosts++
			}
		}
		s.hellos = framing * hosts * (helloBytes + 2*updateBytes) / float64(len(all))
		s.bytes += s.hellos
	}
	s.perElephant = reports / elephants
	s.best(flows)
	return s, nil
}

// most observers that tau stays above 1/s for.
func (m method) most(threshold float64, observers int) int {
	for observers > 1 && math.Round(m.epsilon*threshold/float64(observers)) <= float64(m.start) {
		observers /= 2
	}
	return observers
}

// sweep a method's parameter.
func (n network) sweep(ctx context.Context, all []*window, percentile float64, list []method) (scores []score, err error) {
	for _, m := range list {
		threshold := float64(all[0].threshold(percentile))
		if m.epsilon > 0 && m.locality && math.Round(m.epsilon*threshold) <= float64(m.start) {
			continue // refused: tau is not above 1/s
		}
		s, err := n.judge(ctx, all, m, percentile)
		if err != nil {
			return nil, err
		}
		scores = append(scores, s)
	}
	return scores, nil
}

func carpes(p *eval.Page, starts ...int) (list []method) {
	epsilons := append([]float64{.004, .006, .009}, grid(.012, .3, eval.Pick(p, 10, 6))...)
	for _, epsilon := range append(epsilons, .4, .55, .7, .9, .99) { // up to one report an elephant
		for _, start := range starts {
			list = append(list, method{name: "carpe", epsilon: epsilon, start: start, locality: true})
		}
	}
	return list
}

func agnostic(p *eval.Page) (list []method) {
	for _, epsilon := range grid(.02, .3, eval.Pick(p, 5, 4)) {
		list = append(list, method{name: "locality-agnostic", epsilon: epsilon, start: 1})
	}
	return list
}

func samplings(p *eval.Page) (list []method) {
	for _, rate := range grid(.0006, .2, eval.Pick(p, 27, 7)) {
		list = append(list, method{name: "sampling", rate: rate})
	}
	return list
}

func grid(from, to float64, n int) (all []float64) {
	for i := range n {
		all = append(all, from*math.Pow(to/from, float64(i)/float64(n-1)))
	}
	return all
}

// cheapest of those that reach an F1, with no more state.
func cheapest(scores []score, f1, state float64) (best score, found bool) {
	for _, s := range scores {
		if s.f1 >= f1 && s.state <= state && (!found || s.bytes < best.bytes) {
			best, found = s, true
		}
	}
	return best, found
}

// front are scores that nobody cheaper reaches, by bytes.
func front(scores []score, state float64) (list []score) {
	for _, f1 := range grid(.3, 1, 60) {
		if s, found := cheapest(scores, f1, state); found && (len(list) == 0 || list[len(list)-1].bytes < s.bytes) {
			list = append(list, s)
		}
	}
	return list
}
