package fridge

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Single samples of the data plane (section 6.2), so that a percentile names connections. Sampled is the first leg of a handshake, and of
// the other rules the only delay: what delay_ns is the distribution of.

// sample is the delay of one request.
type sample struct {
	time   int64 // of the response, ns
	delay  int64 // ns
	x      uint32
	part   int       // fridge
	weight float64   // requests that it stands for; 0: not calculated yet
	key    heavy.Key // from who sent the request
}

// sampleSpec is the key of samples.
var sampleSpec = heavy.Spec{Fields: heavy.FiveTuple}

// slower orders samples, the slowest first; equals always in the same order.
func (s sample) slower(o sample) int {
	return cmp.Or(cmp.Compare(o.delay, s.delay), cmp.Compare(s.time, o.time), s.key.Compare(o.key))
}

// nearBins are the delays that candidates for percentiles are stored by: nearMost of each bin, 4 % wide.
var nearBins = maps.Bins{Bits: delay.Bits, Mantissa: 4}

// nearMost is also how many samples name a percentile.
const nearMost = 3

// mostSamples bounds the samples of a snapshot.
func (c *config) mostSamples() int { return c.samples + nearMost*nearBins.Len() }

func (c *config) nearBin(s sample) int {
	return nearBins.Index(uint64(min(max(s.delay/c.tick, 0), math.MaxUint32)))
}

// spare is how many times the listed samples a collection holds, so that the list of the next window, whose floor is the least of them, is
// complete if its delays are about as long.
const spare = 4

// collection holds the samples of a window: the slowest, and the latest of every bin.
type collection struct {
	config *config
	list   fastestFirst
	near   map[int][]sample
	floor  int64 // ns, the highest in this window: every response that took as long was sent, unless it was refused or lost
}

func newCollection(c *config, floor int64) *collection {
	return &collection{config: c, near: map[int][]sample{}, floor: floor}
}

// fastestFirst is a heap whose root is the first to be given up.
type fastestFirst []sample

func (f fastestFirst) Len() int           { return len(f) }
func (f fastestFirst) Less(i, j int) bool { return f[i].slower(f[j]) > 0 }
func (f fastestFirst) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *fastestFirst) Push(s any)        { *f = append(*f, s.(sample)) }
func (f *fastestFirst) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

func (c *collection) add(s sample) {
	switch {
	case !c.full():
		heap.Push(&c.list, s)
	case s.slower(c.list[0]) < 0:
		c.list[0] = s
		heap.Fix(&c.list, 0)
	}
	bin := c.config.nearBin(s)
	near := append(c.near[bin], s)
	c.near[bin] = near[max(0, len(near)-nearMost):]
}

func (c *collection) most() int { return spare * c.config.samples }

func (c *collection) full() bool { return len(c.list) == c.most() }

// least is the smallest delay of a full list, in ns; 0 if there is room.
func (c *collection) least() int64 {
	if !c.full() {
		return 0
	}
	return c.list[0].delay
}

// pace is the floor for the rest of a window of which a share has passed. A floor that fewer have reached than by now a quarter of the list's
// length is too high: delays have fallen. Samples that are drawn whatever their delay show what is slow now.
func (c *collection) pace(floor int64, passed float64) int64 {
	due := int(math.Ceil(passed * float64(c.most())))
	above := 0
	for _, s := range c.list {
		if s.delay >= floor {
			above++
		}
	}
	switch {
	case 4*above >= due:
		return max(floor, c.least())
	case len(c.list) < due:
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(c.list), sample.slower)
	return sorted[due-1].delay
}

// complete is the delay from which on every response was sent.
func (c *collection) complete() int64 { return max(c.floor, c.least()) }

// all samples that are reported, the slowest first, each once.
func (c *collection) all() []sample {
	list := slices.SortedFunc(slices.Values(c.list), sample.slower)
	list = list[:min(len(list), c.config.samples)]
	for _, near := range c.near {
		list = append(list, near...)
	}
	return unique(list)
}

func unique(list []sample) []sample {
	slices.SortFunc(list, sample.slower)
	return slices.CompactFunc(list, func(a, b sample) bool { return a.slower(b) == 0 })
}

// sampled are the samples of a window as a report has them.
type sampled struct {
	list     []sample // the slowest first: more than are listed, as candidates for percentiles
	sent     uint64
	refused  uint64
	lost     uint64
	complete int64 // ns; from here on nothing is missing but what was refused or lost
}

// plus adds the samples of another host: the slowest of both, and of every bin the latest.
func (c *config) plus(a, b sampled) sampled {
	both := newCollection(c, 0)
	list := slices.Concat(a.list, b.list)
	slices.SortStableFunc(list, func(x, y sample) int { return cmp.Compare(x.time, y.time) })
	for _, s := range list {
		both.add(s)
	}
	return sampled{list: both.all(), sent: a.sent + b.sent, refused: a.refused + b.refused, lost: a.lost + b.lost, complete: max(a.complete, b.complete)}
}

// Words of a snapshot with samples.
const (
	sampleWords   = "samples"  // sampleWidth a sample
	samplingWords = "sampling" // sent, refused, lost, complete

	sampleWidth   = 4 + heavy.KeyWords
	samplingWidth = int(bpf.FridgeFridgeSamplingCounterSAMPLES_COUNTS) + 1
)

func (s sampled) into(to *snapshot.Snapshot) {
	words := make(snapshot.Words, 0, sampleWidth*len(s.list))
	for _, one := range s.list {
		words = append(words, uint64(one.time), uint64(one.delay), uint64(one.part)<<32|uint64(one.x), math.Float64bits(one.weight))
		words = append(words, one.key[:]...)
	}
	to.Words[sampleWords] = words
	to.Words[samplingWords] = snapshot.Words{s.sent, s.refused, s.lost, uint64(s.complete)}
}

// sampledOf reads the samples of a snapshot.
func (c *config) sampledOf(r *snapshot.Reader) (s sampled) {
	if c.samples == 0 {
		return s
	}
	n := r.Words(samplingWords, samplingWidth)
	s = sampled{sent: n[0], refused: n[1], lost: n[2], complete: int64(n[3])}
	rows := r.Rows(sampleWords, sampleWidth)
	if len(rows) > c.mostSamples() {
		r.Refuse("%d samples, at most %d are stored", len(rows), c.mostSamples())
		return s
	}
	for _, w := range rows {
		one := sample{time: int64(w[0]), delay: int64(w[1]), part: int(w[2] >> 32), x: uint32(w[2]), weight: math.Float64frombits(w[3]), key: heavy.Key(w[4:])}
		if one.delay < 0 || one.delay > c.rules.Longest || one.part >= len(c.parts) || !(one.weight >= 0) || math.IsInf(one.weight, 1) {
			r.Refuse("a sample of %d ns in fridge %d with a weight of %g", one.delay, one.part, one.weight)
			return s
		}
		s.list = append(s.list, one)
	}
	slices.SortFunc(s.list, sample.slower)
	return s
}

// weigh calculates the weights of a window's samples: 1/q, with the p and the size of the fridge that each was admitted to.
func (e *estimator) weigh(list []sample) {
	for i := range list {
		s := &list[i]
		x := float64(s.x)
		if !e.recorded {
			x = e.rates.survived(s.part, float64(s.delay))
		}
		s.weight = e.rates.factor(s.part).Weight(x)
	}
}

func (e *estimator) sampleValues(s sampled) []report.Value {
	if e.samples == 0 {
		return nil
	}
	return []report.Value{
		{Name: "sampled", Value: s.sent, Unit: report.Responses, Kind: report.Counter, Help: "responses that were sent one by one: the slowest, and a share of all"},
		{Name: "samples_complete_ns", Value: s.complete, Unit: report.Nanosecond,
			Help: "every response that took longer was sent, but for lost.samples_refused and lost.samples_lost"},
	}
}

// sampleTables lists the slowest samples, and those that are next to the percentiles.
func (c *config) sampleTables(s sampled, quantiles []report.Quantile, offset int64) []report.Table {
	slowest := report.Table{Name: "samples", Title: "slowest responses", Limit: c.samples, Columns: sampleColumns(),
		Help: "slowest responses of the window, by connection: source sent the request"}
	for _, one := range s.list[:min(len(s.list), c.samples)] {
		slowest.Rows = append(slowest.Rows, sampleCells(one, offset))
	}
	near := report.Table{Name: "percentile_samples", Title: "responses at the percentiles", Limit: nearMost * len(quantiles),
		Help:    "single responses whose delay is a percentile's, by connection: source sent the request",
		Columns: append([]report.Column{{Name: "percentile", Label: true, Help: "the percentile of delay_ns that the response is next to"}}, sampleColumns()...)}
	for _, q := range quantiles {
		for _, one := range c.nearest(s.list, q) {
			near.Rows = append(near.Rows, append([]any{q.Name}, sampleCells(one, offset)...))
		}
	}
	return []report.Table{slowest, near}
}

// nearest are the samples next to a percentile, the nearest first: within its interval, or as near as a bin of candidates is wide.
func (c *config) nearest(list []sample, q report.Quantile) []sample {
	if !q.Defined || !(q.Value > 0) {
		return nil
	}
	width := math.Exp2(1 / float64(int(1)<<nearBins.Mantissa))
	low, high := q.Value/width-float64(c.tick), q.Value*width+float64(c.tick)
	if q.Bounded() {
		low, high = min(low, q.Low), max(high, q.High)
	}
	off := func(s sample) float64 { return math.Abs(math.Log(float64(max(s.delay, c.tick)) / q.Value)) }
	var near []sample
	for _, s := range list {
		if d := float64(s.delay); d >= low && d <= high {
			near = append(near, s)
		}
	}
	slices.SortStableFunc(near, func(a, b sample) int { return cmp.Compare(off(a), off(b)) })
	return near[:min(len(near), nearMost)]
}

func sampleColumns() []report.Column {
	return append(sampleSpec.Columns(),
		report.Column{Name: "delay_ns", Unit: report.Nanosecond, Help: "delay from the request to the response, to fridge.tick"},
		report.Column{Name: "weight", Help: "answered requests that the response stands for: 1 over the probability that it was sampled"},
		report.Column{Name: "at", Help: "time of the response: time of day, UTC"},
		report.Column{Name: "when", JSON: true, Help: "the same as at, with its date"},
		report.Column{Name: "time_ns", Unit: report.Nanosecond, JSON: true, Help: "the same as at, in the clock of the packets"})
}

func sampleCells(s sample, offset int64) []any {
	return append(sampleSpec.Cells(s.key), s.delay, s.weight, report.TimeOfDay(s.time, offset), report.When(s.time, offset), s.time)
}
