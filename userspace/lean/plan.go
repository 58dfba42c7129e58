package lean

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/lean/expect"
	"github.com/xdpmon/xdpmon/userspace/report"
)

var errPlan = errors.New("a plan for lean")

// Defaults of the traffic model that plans are calculated for: docs/eval/lean.md.
const (
	modelFlows  = 370_000
	modelK      = 100
	modelWindow = 60.0 // s
	// dataShare is the share of packets that carry data, each with an ACK of its own.
	dataShare = 0.5
	// delaySigma is the standard deviation of the logarithm of flows' round trips.
	delaySigma = 0.9
	roundTrip  = 0.06 // s, typical of the segments that wait in the fridge
)

// planLoad is what a plan is made for.
type planLoad struct {
	rate   float64 // packets a second
	window float64 // s
	flows  int     // in a window
	k      int     // length of the list
	memory int64   // bytes of a statistic
}

func readPlan(a algo.PlanArgs) (planLoad, error) {
	l := planLoad{rate: a.RatePerSecond, window: modelWindow, flows: modelFlows, k: modelK, memory: a.MemoryBytes}
	if !(l.rate > 0) {
		return l, fmt.Errorf("%w: --rate, packets a second, must be positive", errPlan)
	}
	if l.memory < baseMemory/16 || l.memory > maxScale*baseMemory {
		return l, fmt.Errorf("%w: --memory %d bytes a statistic; allowed are %d to %d", errPlan, l.memory, baseMemory/16, maxScale*baseMemory)
	}
	for key, text := range a.Extra {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 1) || n > 1e9 {
			return l, fmt.Errorf("%w: --extra %s=%s: a number from 1 to 1e9", errPlan, key, text)
		}
		switch key {
		case "flows":
			l.flows = int(n)
		case "k":
			l.k = int(n)
		case "window-seconds":
			l.window = n
		default:
			return l, fmt.Errorf("%w: --extra %s: there are flows, k and window-seconds", errPlan, key)
		}
	}
	if l.k > l.flows {
		return l, fmt.Errorf("%w: --extra k=%d: more than the %d flows", errPlan, l.k, l.flows)
	}
	return l, nil
}

// Plan implements algo.Planner: the recall to expect for a number of flows, k and a memory.
func (c *config) Plan(a algo.PlanArgs) (*report.Body, error) {
	l, err := readPlan(a)
	if err != nil {
		return nil, err
	}
	b := report.Body{Values: []report.Value{
		{Name: "memory_setting", Value: fmt.Sprint(l.memory), Kind: report.Info, Help: "set lean.memory"},
		gauge("flows", l.flows, report.Count, "flows of a window"),
		gauge("k", l.k, report.Count, "length of the list"),
	}}
	scale := scaleOf(l.memory)
	for _, s := range c.on {
		at := bounded(c.statistics[s].layout(scale))
		b.Values = append(b.Values,
			gauge(s.String()+"_memory", int64(at.bytes()), report.Bytes, "tables, sketch and filter of one bank"),
			gauge(s.String()+"_recall", l.recall(s, at, c.budget), report.Ratio, "share of the k most affected flows that is expected in the list"))
	}
	b.Notes = append(b.Notes,
		"sizes of flows are taken as 1/(rank+10)^1.1, round trips as log-normal; the bars of docs/eval/lean.md are such traffic",
		"latency is calculated from the variance of sketch and sampling; loss, ooo and retrans from what was measured with 370,000 flows at 10 to 160 kB: misses grow with flows * k / memory")
	return &b, nil
}

func (l planLoad) recall(s stat, at layout, candidates int) float64 {
	if s == latency {
		return l.latencyRecall(at, candidates)
	}
	return l.eventRecall(s)
}

// Misses at 40 kB, 370,000 flows and k = 100, and how they grow with flows * k / memory: fitted to the figures of
// docs/eval/lean.md (loss: 11, 4, 2, 1 per cent at 10, 20, 40, 80 kB; retrans: 39, 18, 6, 1).
var missed = [stats]float64{loss: 0.02, ooo: 0.003, retrans: 0.065}

const missGrowth = 1.25

func (l planLoad) eventRecall(s stat) float64 {
	crowding := float64(l.flows) / modelFlows * float64(l.k) / modelK * baseMemory / float64(l.memory)
	return max(0, 1-missed[s]*math.Pow(crowding, missGrowth))
}

// latencyRecall adds the two variances of a flow's total delay. Sketch: the unreported flows' values in a cell. Sampling: a total
// of n segments, each counted with weight w and probability 1/w, has the relative variance (w - 1) / n.
func (l planLoad) latencyRecall(at layout, candidates int) float64 {
	totals := l.totals()
	segments := l.rate * l.window * dataShare
	per := segments / l.sumOf(expect.Skewed)
	sketch := expect.Deviation(min(candidates, l.flows), l.flows, at.columns, totals.at)
	weight := l.weight(at.tables["lean_lat_fr"])
	unit := totals.at(float64(l.k)) / (per * expect.Skewed(float64(l.k))) // delay that a segment of the last flow in the list represents
	return expect.Recall(l.k, l.flows, totals.at, func(v float64) float64 {
		return math.Sqrt(sketch*sketch + v*unit*(weight-1))
	})
}

// weight is the mean weight of a sample with p=auto: 1/p, with p such that a typical delay fills half of the fridge, times the
// inverse probability that a record survives a round trip.
func (l planLoad) weight(entries int) float64 {
	p := math.Exp2(math.Floor(math.Log2(min(1, pressure*float64(entries)/(l.rate*dataShare*typical)))))
	return max(1, math.Exp(l.rate*dataShare*p*roundTrip/float64(max(entries, 1)))/p)
}

func (l planLoad) sumOf(value func(float64) float64) (sum float64) {
	for r, step := 0.0, 1.0; int(r) < l.flows; r += step {
		step = min(max(1, math.Floor(r/16)), float64(l.flows)-r)
		sum += step * value(r+(step-1)/2)
	}
	return sum
}

// curve is a decreasing function of the rank: logarithms of values at ranks that grow by a fixed ratio.
type curve struct{ values []float64 }

const (
	curveFirst = 0.5
	curveRatio = 1.25
)

// at interpolates on logarithmic axes.
func (c *curve) at(rank float64) float64 {
	place := math.Log((rank+0.5)/curveFirst) / math.Log(curveRatio)
	i := min(max(int(place), 0), len(c.values)-2)
	share := place - float64(i)
	return math.Exp(c.values[i] + share*(c.values[i+1]-c.values[i]))
}

// totals are the flows' total delays by rank. Sizes times log-normal round trips have a heavier tail than sizes alone, and the
// flow with the k-th largest total is not the k-th largest flow.
func (l planLoad) totals() *curve {
	c, high := &curve{}, 100.0
	for n := curveFirst; n < curveRatio*float64(l.flows); n *= curveRatio {
		low := 1e-9
		for range 24 {
			middle := math.Sqrt(low * high)
			if l.sumOf(func(rank float64) float64 { return expect.Above(math.Log(middle/expect.Skewed(rank)) / delaySigma) }) > n {
				low = middle
			} else {
				high = middle
			}
		}
		c.values = append(c.values, math.Log(high))
	}
	return c
}
