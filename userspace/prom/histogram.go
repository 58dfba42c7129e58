package prom

import (
	"math"
	"sort"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// nativeSchema gives 2^3 native buckets an octave: a bucket is 9 % wide.
const nativeSchema = 3

// zeroThreshold is the width of the native zero bucket: a nanosecond, or a billionth of anything else.
const zeroThreshold = 1e-9

// Histograms is the form in which distributions are served; "" is both, of which Prometheus uses those that it supports.
type Histograms string

const (
	BothHistograms    Histograms = "both"
	ClassicHistograms Histograms = "classic" // fixed buckets, a series each
	NativeHistograms  Histograms = "native"  // one series, 9 % wide buckets; only a scrape in protobuf sees them
)

// HistogramForms are the accepted values, for flags and configurations.
var HistogramForms = []Histograms{BothHistograms, ClassicHistograms, NativeHistograms}

// series is the maximum number of series of a histogram with so many bounds.
func (f Histograms) series(bounds int) int {
	if f == NativeHistograms {
		return 1
	}
	return bounds + 3 // +Inf, the sum and the count
}

// histogram accumulates corrected counts over windows. The counts are estimates and therefore not integers;
// they are rounded cumulatively when read, so that all buckets agree with the series' count.
type histogram struct {
	bounds  []float64 // classic, in the base unit
	classic []float64 // values <= bounds[i], accumulated
	native  map[int]float64
	zero    float64 // values too small for a native bucket
	sum     float64
	created time.Time
}

func newHistogram(unit report.Unit, created time.Time) *histogram {
	bounds := classicBounds(unit)
	return &histogram{bounds: bounds, classic: make([]float64, len(bounds)), native: map[int]float64{}, created: created}
}

// classicBounds are fixed per unit, so that windows, hosts and algorithms can be added: 10 us to 100 s in steps of 1, 2.5 and
// 5 for delays, powers of four for bytes, 1-2.5-5 steps for everything else (a thousandth to one for ratios).
func classicBounds(unit report.Unit) []float64 {
	switch unit {
	case report.Nanosecond:
		return steps(1e-5, 100)
	case report.Bytes:
		return prometheus.ExponentialBuckets(64, 4, 13)
	case report.Ratio:
		return steps(1e-3, 1)
	}
	return steps(1, 1e9)
}

// steps lists from, 2.5 from, 5 from, 10 from ... to.
func steps(from, to float64) []float64 {
	var out []float64
	first, last := int(math.Round(math.Log10(from))), int(math.Round(math.Log10(to)))
	for e := first; e < last; e++ {
		for _, m := range []float64{1, 2.5, 5} {
			out = append(out, decimal(m, e))
		}
	}
	return append(out, decimal(1, last))
}

// decimal is m * 10^e without the rounding error of a product with a negative power of ten: 2.5e-05, not 2.50...01e-05.
func decimal(m float64, e int) float64 {
	if e < 0 {
		return m / math.Pow10(-e)
	}
	return m * math.Pow10(e)
}

// add accumulates a window; values that are not finite are skipped.
func (h *histogram) add(d report.Distribution) {
	total := d.Total()
	if !(total > 0) || math.IsInf(total, 0) {
		return
	}
	scale := base(1, d.Unit)
	for i, bound := range h.bounds {
		h.classic[i] += total * d.Share(bound/scale)
	}
	h.addNative(d, scale)
	if sum := base(d.Sum, d.Unit); !math.IsNaN(sum) && !math.IsInf(sum, 0) {
		h.sum += sum
	}
}

// addNative distributes every bucket's values over the native buckets that it overlaps.
func (h *histogram) addNative(d report.Distribution, scale float64) {
	var before report.Bucket
	for i, b := range d.Buckets {
		mass := b.Cumulative - before.Cumulative
		if mass > 0 {
			low := before.Upper
			if i == 0 {
				low = b.Upper
			}
			h.spread(low*scale, b.Upper*scale, mass)
		}
		before = b
	}
}

// spread puts mass values into (low, high], evenly on a logarithmic axis. Values in a bucket without an upper bound
// are put at its lower one.
func (h *histogram) spread(low, high, mass float64) {
	if math.IsInf(high, 1) {
		high = low
	}
	if high <= zeroThreshold {
		h.zero += mass
		return
	}
	if low <= zeroThreshold || low >= high {
		h.native[nativeIndex(high)] += mass
		return
	}
	width := math.Log2(high / low)
	for i := nativeIndex(low); i <= nativeIndex(high); i++ {
		from, to := max(low, nativeUpper(i-1)), min(high, nativeUpper(i))
		if to > from {
			h.native[i] += mass * math.Log2(to/from) / width
		}
	}
}

// nativeIndex is the index of the bucket (nativeUpper(i-1), nativeUpper(i)] that contains x.
func nativeIndex(x float64) int {
	return int(math.Ceil(math.Log2(x)*(1<<nativeSchema) - 1e-9))
}

func nativeUpper(i int) float64 { return math.Exp2(float64(i) / (1 << nativeSchema)) }

// write encodes the histogram, with both classic and native buckets unless one was chosen; the text format has the classic ones.
func (h *histogram) write(form Histograms) *dto.Histogram {
	hist := &dto.Histogram{
		SampleSum: new(h.sum), CreatedTimestamp: timestamppb.New(h.created),
		Schema: new(int32(nativeSchema)), ZeroThreshold: new(zeroThreshold), ZeroCount: new(whole(h.zero)),
	}
	hist.SampleCount = new(h.writeNative(hist))
	if form == NativeHistograms {
		return hist
	}
	if form == ClassicHistograms {
		hist = &dto.Histogram{SampleSum: hist.SampleSum, SampleCount: hist.SampleCount, CreatedTimestamp: hist.CreatedTimestamp}
	}
	for i, bound := range h.bounds {
		count := min(hist.GetSampleCount(), whole(h.classic[i]))
		hist.Bucket = append(hist.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(count)})
	}
	return hist
}

func whole(count float64) uint64 { return uint64(math.Round(count)) }

// writeNative writes spans of consecutive buckets and the differences between neighbours, and returns the number
// of values in all of them.
func (h *histogram) writeNative(hist *dto.Histogram) (count uint64) {
	cumulative, count := h.zero, whole(h.zero)
	previous, next := int64(0), 0
	for n, i := range h.indices() {
		cumulative += h.native[i]
		population := int64(whole(cumulative) - count)
		count = whole(cumulative)
		if n == 0 || i != next {
			hist.PositiveSpan = append(hist.PositiveSpan, &dto.BucketSpan{Offset: new(int32(i - next)), Length: new(uint32(0))})
		}
		*hist.PositiveSpan[len(hist.PositiveSpan)-1].Length++
		hist.PositiveDelta = append(hist.PositiveDelta, population-previous)
		previous, next = population, i+1
	}
	if len(h.native) == 0 {
		// A span without buckets marks an empty native histogram, unlike a classic one.
		hist.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
	}
	return count
}

func (h *histogram) indices() []int {
	indices := make([]int, 0, len(h.native))
	for i := range h.native {
		indices = append(indices, i)
	}
	sort.Ints(indices)
	return indices
}
