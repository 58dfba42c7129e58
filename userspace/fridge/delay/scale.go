package delay

import (
	"math"

	"github.com/xdpmon/xdpmon/maps"
)

// Bits of the numbers that the data plane bins: ticks, bytes, packets.
const Bits = 32

// Scale maps the bins of a histogram to values.
type Scale struct {
	Bins maps.Bins
	// Unit is what one count of the binned number is worth: ns a tick, 1 for bytes and packets.
	Unit float64
	// Exact marks numbers without rounding error (bytes, packets). A delay in ticks is the difference of two times that were
	// rounded down, so n ticks are any delay between n-1 and n+1, and n on average.
	Exact bool
}

// NewScale is a scale of 2^mantissa bins an octave.
func NewScale(mantissa int, unit float64, exact bool) Scale {
	return Scale{Bins: maps.Bins{Bits: Bits, Mantissa: mantissa}, Unit: unit, Exact: exact}
}

// Edges of a bin in the scale's unit. The values of a bin are taken to be spread over them evenly on a logarithmic axis.
func (s Scale) Edges(bin int) (low, high float64) {
	l, h := s.Bins.Range(bin)
	if s.Exact {
		return math.Nextafter(float64(l), math.Inf(-1)) * s.Unit, float64(h-1) * s.Unit
	}
	return max(0, float64(l)-0.5) * s.Unit, (float64(h) - 0.5) * s.Unit
}

// Centre of a bin: the mean of its values.
func (s Scale) Centre(bin int) float64 {
	low, high := s.Edges(bin)
	if low <= 0 || high-low < 1e-6*high {
		return (max(low, 0) + high) / 2
	}
	return (high - low) / math.Log(high/low)
}

// Bin of a value.
func (s Scale) Bin(value float64) int {
	n := math.Round(value / s.Unit)
	if math.IsNaN(n) {
		return 0
	}
	return s.Bins.Index(uint64(min(max(n, 0), math.MaxUint32)))
}
