// Package rates has the flows of lean's tables by rate: what a word of the data plane holds (bpf/lean/rate.h), whose it is, and the rate that follows
// with its bounds.
package rates

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/expect"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// The words of a table.
const (
	eventBit  = 27
	creditBit = 45
	signBit   = 48
	weightBit = 28
)

// sixteenths is the unit of weights.
const sixteenths = 16

// Flow is what was counted of a flow in a window.
type Flow struct {
	Packets, Events uint64 // since its entries; of latency the delays, long or not
	Entries         uint64 // each with one event, which is not among the events
	Sum, Weights    uint64 // latency: delays in ticks times their weights in sixteenths, and the weights
	Squares         uint64 // ... and their squares times the weights
}

// Add adds what another word or host counted of the flow.
func (f *Flow) Add(o Flow) {
	f.Packets += o.Packets
	f.Events += o.Events
	f.Entries += o.Entries
	f.Sum += o.Sum
	f.Weights += o.Weights
	f.Squares += o.Squares
}

// Held is what a word and, of latency, its two sums count.
func Held(word, sums, squares uint64) Flow {
	return Flow{Packets: word & (1<<eventBit - 1), Events: word >> eventBit & (1<<(creditBit-eventBit) - 1), Entries: 1,
		Sum: sums >> weightBit, Weights: sums & (1<<weightBit - 1), Squares: squares}
}

// share is the flow's share of events among the packets of the window: all events are counted, and of the packets those since the
// entry. The packets before an entry are one share's inverse.
func (f *Flow) share() float64 { return float64(f.Events+f.Entries) / f.size() }

// size is how many packets the flow had.
func (f *Flow) size() float64 {
	entries := float64(f.Entries)
	return (float64(f.Packets) + entries) * (1 + entries/(float64(f.Events)+entries))
}

// mean delay in ticks; 0: none is known.
func (f *Flow) mean() float64 {
	if f.Weights == 0 {
		return 0
	}
	return float64(f.Sum) / float64(f.Weights)
}

// Measure is how a statistic makes a rate of what was counted.
type Measure struct {
	Tick     float64 // ns; 0: the rate is a share of the packets, else a mean delay
	Followed float64 // share of a flow's packets that the statistic can compare
	Missed   float64 // ... and of the events of these that it misses
	Least    int     // packets of a flow that is listed
}

// rank orders flows.
func (m *Measure) rank(f *Flow) float64 {
	if m.Tick > 0 {
		return f.mean() * m.Tick
	}
	return f.share()
}

// known reports whether something was counted since the flow's first event.
func (m *Measure) known(f *Flow) bool { return f.Events > 0 || m.Tick == 0 && f.Entries > 1 }

// large reports whether a flow has the packets that a place in the list needs. A flow enters latency's table with a delay that the fridge has
// followed: one of as many as it stands for.
func (m *Measure) large(f *Flow) bool {
	size := f.size() / m.Followed
	if m.Tick > 0 {
		size = float64(f.Packets) + float64(f.Entries)*(1+float64(f.Weights)/sixteenths/float64(max(1, f.Events)))
	}
	return size >= float64(m.Least)
}

// bounds of a flow's rate: of Clopper and Pearson for a share; for a mean delay from the spread of those that were followed, each measured in
// whole ticks. With fewer than three there is no spread.
func (m *Measure) bounds(f *Flow) (low, high float64) {
	n := float64(f.Events)
	if m.Tick == 0 {
		low, high = expect.Proportion(n, float64(max(f.Packets, f.Events)))
		return low, min(1, high/(1-m.Missed))
	}
	if n < 3 {
		return math.NaN(), math.NaN()
	}
	ticks := f.mean()
	spread := max(0, float64(f.Squares)/float64(f.Weights)-ticks*ticks)*n/(n-1) + 1./6
	half := uneven * expect.Student(n) * math.Sqrt(spread/n)
	return max(0, ticks-half) * m.Tick, (ticks + half) * m.Tick
}

// uneven widens the bounds of a mean: delays that were followed while p was larger have a smaller weight, so that there are fewer of them than were
// counted. Without it 93 to 94 % held (docs/eval/lean.md's model, 905 flows).
const uneven = 1.25

const width = heavy.KeyWords + 6

// Parse reads the flows of a snapshot.
func Parse(r *snapshot.Reader, name string) map[heavy.Key]Flow {
	flows := map[heavy.Key]Flow{}
	for _, w := range r.Rows(name, width) {
		n := w[heavy.KeyWords:]
		for _, x := range n {
			if x > math.MaxInt64/2 {
				r.Refuse("a flow with %d of something", x)
				return flows
			}
		}
		flows[heavy.Key(w[:heavy.KeyWords])] = Flow{n[0], n[1], n[2], n[3], n[4], n[5]}
	}
	return flows
}
