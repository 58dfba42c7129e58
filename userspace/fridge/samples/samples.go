// Package samples are single samples of the data plane (Zheng et al., section 6.2), so that a percentile names connections: the stream of them, which
// the slowest of a window are, and the tables that list them. Sampled is the first leg of a handshake, and of the other rules the only delay: what
// delay_ns is the distribution of.
package samples

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

// Form is what of a fridge's configuration samples depend on.
type Form struct {
	Listed   int   // the slowest that are listed
	Tick     int64 // ns
	Longest  int64 // delay, ns
	Parts    int   // fridges
	WindowNS int64 // 0: no end
}

// Sample is the delay of one request.
type Sample struct {
	Time   int64 // of the response, ns
	Delay  int64 // ns
	X      uint32
	Part   int       // fridge
	Weight float64   // requests that it stands for; 0: not calculated yet
	Key    heavy.Key // from who sent the request
}

// Spec is the key of samples.
var Spec = heavy.Spec{Fields: heavy.FiveTuple}

// Slower orders samples, the slowest first; equals always in the same order.
func (s Sample) Slower(o Sample) int {
	return cmp.Or(cmp.Compare(o.Delay, s.Delay), cmp.Compare(s.Time, o.Time), s.Key.Compare(o.Key))
}

// nearBins are the delays that candidates for percentiles are stored by: nearMost of each bin, 4 % wide.
var nearBins = maps.Bins{Bits: delay.Bits, Mantissa: 4}

// nearMost is also how many samples name a percentile.
const nearMost = 3

// mostSamples bounds the samples of a snapshot.
func (c Form) mostSamples() int { return c.Listed + nearMost*nearBins.Len() }

func (c Form) nearBin(s Sample) int {
	return nearBins.Index(uint64(min(max(s.Delay/c.Tick, 0), math.MaxUint32)))
}

// spare is how many times the listed samples a Collection holds, so that the list of the next window, whose floor is the least of them, is
// complete if its delays are about as long.
const spare = 4

// Collection holds the samples of a window: the slowest, and the latest of every bin.
type Collection struct {
	Form
	list  fastestFirst
	near  map[int][]Sample
	floor int64 // ns, the highest in this window: every response that took as long was sent, unless it was refused or lost
}

func NewCollection(c Form, floor int64) *Collection {
	return &Collection{Form: c, near: map[int][]Sample{}, floor: floor}
}

// fastestFirst is a heap whose root is the first to be given up.
type fastestFirst []Sample

func (f fastestFirst) Len() int           { return len(f) }
func (f fastestFirst) Less(i, j int) bool { return f[i].Slower(f[j]) > 0 }
func (f fastestFirst) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *fastestFirst) Push(s any)        { *f = append(*f, s.(Sample)) }
func (f *fastestFirst) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

// Add keeps a sample if it is among the slowest, or among the latest of its delay.
func (c *Collection) Add(s Sample) {
	switch {
	case !c.full():
		heap.Push(&c.list, s)
	case s.Slower(c.list[0]) < 0:
		c.list[0] = s
		heap.Fix(&c.list, 0)
	}
	bin := c.nearBin(s)
	near := append(c.near[bin], s)
	c.near[bin] = near[max(0, len(near)-nearMost):]
}

func (c *Collection) most() int { return spare * c.Listed }

func (c *Collection) full() bool { return len(c.list) == c.most() }

// least is the smallest delay of a full list, in ns; 0 if there is room.
func (c *Collection) least() int64 {
	if !c.full() {
		return 0
	}
	return c.list[0].Delay
}

// pace is the floor for the rest of a window of which a share has passed. A floor that fewer have reached than by now a quarter of the list's
// length is too high: delays have fallen. Samples that are drawn whatever their delay show what is slow now.
func (c *Collection) pace(floor int64, passed float64) int64 {
	due := int(math.Ceil(passed * float64(c.most())))
	above := 0
	for _, s := range c.list {
		if s.Delay >= floor {
			above++
		}
	}
	switch {
	case 4*above >= due:
		return max(floor, c.least())
	case len(c.list) < due:
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(c.list), Sample.Slower)
	return sorted[due-1].Delay
}

// complete is the delay from which on every response was sent.
func (c *Collection) complete() int64 { return max(c.floor, c.least()) }

// All samples that are reported, the slowest first, each once.
func (c *Collection) All() []Sample {
	list := slices.SortedFunc(slices.Values(c.list), Sample.Slower)
	list = list[:min(len(list), c.Listed)]
	for _, near := range c.near {
		list = append(list, near...)
	}
	return unique(list)
}

func unique(list []Sample) []Sample {
	slices.SortFunc(list, Sample.Slower)
	return slices.CompactFunc(list, func(a, b Sample) bool { return a.Slower(b) == 0 })
}

// Window are the samples of a window as a report has them.
type Window struct {
	List     []Sample // the slowest first: more than are listed, as candidates for percentiles
	Sent     uint64
	Refused  uint64
	Lost     uint64
	Complete int64 // ns; from here on nothing is missing but what was refused or lost
}

// Plus adds the samples of another host: the slowest of both, and of every bin the latest.
func (c Form) Plus(a, b Window) Window {
	both := NewCollection(c, 0)
	list := slices.Concat(a.List, b.List)
	slices.SortStableFunc(list, func(x, y Sample) int { return cmp.Compare(x.Time, y.Time) })
	for _, s := range list {
		both.Add(s)
	}
	return Window{List: both.All(), Sent: a.Sent + b.Sent, Refused: a.Refused + b.Refused, Lost: a.Lost + b.Lost, Complete: max(a.Complete, b.Complete)}
}

// Words of a snapshot with samples.
const (
	sampleWords   = "samples"  // sampleWidth a sample
	samplingWords = "sampling" // sent, refused, lost, complete

	sampleWidth   = 4 + heavy.KeyWords
	samplingWidth = int(bpf.FridgeFridgeSamplingCounterSAMPLES_COUNTS) + 1
)

// Into stores the samples in a snapshot.
func (s Window) Into(to *snapshot.Snapshot) {
	words := make(snapshot.Words, 0, sampleWidth*len(s.List))
	for _, one := range s.List {
		words = append(words, uint64(one.Time), uint64(one.Delay), uint64(one.Part)<<32|uint64(one.X), math.Float64bits(one.Weight))
		words = append(words, one.Key[:]...)
	}
	to.Words[sampleWords] = words
	to.Words[samplingWords] = snapshot.Words{s.Sent, s.Refused, s.Lost, uint64(s.Complete)}
}

// Of reads the samples of a snapshot.
func (c Form) Of(r *snapshot.Reader) (s Window) {
	if c.Listed == 0 {
		return s
	}
	n := r.Words(samplingWords, samplingWidth)
	s = Window{Sent: n[0], Refused: n[1], Lost: n[2], Complete: int64(n[3])}
	rows := r.Rows(sampleWords, sampleWidth)
	if len(rows) > c.mostSamples() {
		r.Refuse("%d samples, at most %d are stored", len(rows), c.mostSamples())
		return s
	}
	for _, w := range rows {
		one := Sample{Time: int64(w[0]), Delay: int64(w[1]), Part: int(w[2] >> 32), X: uint32(w[2]), Weight: math.Float64frombits(w[3]), Key: heavy.Key(w[4:])}
		if one.Delay < 0 || one.Delay > c.Longest || one.Part >= c.Parts || !(one.Weight >= 0) || math.IsInf(one.Weight, 1) {
			r.Refuse("a sample of %d ns in fridge %d with a weight of %g", one.Delay, one.Part, one.Weight)
			return s
		}
		s.List = append(s.List, one)
	}
	slices.SortFunc(s.List, Sample.Slower)
	return s
}

// Values are the numbers of the stream; none where no samples are sent.
func (c Form) Values(s Window) []report.Value {
	if c.Listed == 0 {
		return nil
	}
	return []report.Value{
		{Name: "sampled", Value: s.Sent, Unit: report.Responses, Kind: report.Counter, Help: "responses that were sent one by one: the slowest, and a share of all"},
		{Name: "samples_complete_ns", Value: s.Complete, Unit: report.Nanosecond,
			Help: "every response that took longer was sent, but for those that were refused or lost"},
	}
}

// Tables lists the slowest samples, and those that are next to the percentiles.
func (c Form) Tables(s Window, quantiles []report.Quantile, offset int64) []report.Table {
	slowest := report.Table{Name: "samples", Title: "slowest responses", Limit: c.Listed, Columns: sampleColumns(),
		Help: "slowest responses of the window, by connection: source sent the request"}
	for _, one := range s.List[:min(len(s.List), c.Listed)] {
		slowest.Rows = append(slowest.Rows, sampleCells(one, offset))
	}
	near := report.Table{Name: "percentile_samples", Title: "responses at the percentiles", Limit: nearMost * len(quantiles),
		Help:    "single responses whose delay is a percentile's, the slowest percentile first, by connection: source sent the request",
		Columns: append([]report.Column{{Name: "percentile", Label: true, Help: "the percentile of delay_ns that the response is next to"}}, sampleColumns()...)}
	for _, q := range slices.Backward(quantiles) {
		for _, one := range c.nearest(s.List, q) {
			near.Rows = append(near.Rows, append([]any{q.Name}, sampleCells(one, offset)...))
		}
	}
	return []report.Table{slowest, near}
}

// nearest are the samples next to a percentile, the nearest first: within its interval, or as near as a bin of candidates is wide.
func (c Form) nearest(list []Sample, q report.Quantile) []Sample {
	if !q.Defined || !(q.Value > 0) {
		return nil
	}
	width := math.Exp2(1 / float64(int(1)<<nearBins.Mantissa))
	low, high := q.Value/width-float64(c.Tick), q.Value*width+float64(c.Tick)
	if q.Bounded() {
		low, high = min(low, q.Low), max(high, q.High)
	}
	off := func(s Sample) float64 { return math.Abs(math.Log(float64(max(s.Delay, c.Tick)) / q.Value)) }
	var near []Sample
	for _, s := range list {
		if d := float64(s.Delay); d >= low && d <= high {
			near = append(near, s)
		}
	}
	slices.SortStableFunc(near, func(a, b Sample) int { return cmp.Compare(off(a), off(b)) })
	return near[:min(len(near), nearMost)]
}

func sampleColumns() []report.Column {
	return append(Spec.Columns(),
		report.Column{Name: "delay_ns", Unit: report.Nanosecond, Help: "delay from the request to the response, to fridge.tick"},
		report.Column{Name: "weight", Help: "answered requests that the response stands for: 1 over the probability that it was sampled"},
		report.Column{Name: "at", Help: "time of the response: time of day, UTC"},
		report.Column{Name: "when", JSON: true, Help: "the same as at, with its date"},
		report.Column{Name: "time_ns", Unit: report.Nanosecond, JSON: true, Help: "the same as at, in the clock of the packets"})
}

func sampleCells(s Sample, offset int64) []any {
	return append(Spec.Cells(s.Key), s.Delay, s.Weight, report.TimeOfDay(s.Time, offset), report.When(s.Time, offset), s.Time)
}
