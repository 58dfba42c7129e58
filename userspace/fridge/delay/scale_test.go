package delay

import (
	"math"
	"testing"
)

// TestScale: the edges of the bins cover all values without gap or overlap, and a value lies in its bin.
func TestScale(t *testing.T) {
	for _, s := range []Scale{NewScale(5, 64, false), NewScale(2, 65536, false), NewScale(3, 1, true)} {
		last := -1.0
		for bin := range s.Bins.Len() {
			low, high := s.Edges(bin)
			if !s.Exact && bin > 0 && low != last {
				t.Fatalf("bin %d starts at %g, the one before ends at %g", bin, low, last)
			}
			if s.Exact && bin > 0 && (low <= last || low > last+1) {
				t.Fatalf("bin %d starts at %g, the one before ends at %g", bin, low, last)
			}
			centre := s.Centre(bin)
			if centre < low || centre > high {
				t.Fatalf("bin %d: centre %g outside of %g .. %g", bin, centre, low, high)
			}
			if got := s.Bin(centre); got != bin {
				t.Fatalf("centre %g of bin %d lies in bin %d", centre, bin, got)
			}
			last = high
		}
	}
}

// TestScaleWidth: a bin is at most 2^-mantissa of its value wide.
func TestScaleWidth(t *testing.T) {
	s := NewScale(5, 64, false)
	for bin := 64; bin < s.Bins.Len(); bin++ {
		low, high := s.Edges(bin)
		if width := high/low - 1; width > 1.0/32+1e-3 {
			t.Errorf("bin %d is %.2f %% wide", bin, 100*width)
		}
	}
}

func TestScaleExactNumbers(t *testing.T) {
	s := NewScale(5, 1, true)
	spectrum := NewSpectrum(s)
	spectrum.Mass[s.Bin(1)], spectrum.Square[s.Bin(1)], spectrum.Raw[s.Bin(1)] = 100, 100, 100
	d := spectrum.Distribution(Label{Name: "flow_packets"})
	for _, q := range d.Quantiles[:3] {
		if math.Abs(q.Value-1) > 1e-9 {
			t.Errorf("%s of flows that have one packet each is %g", q.Name, q.Value)
		}
	}
}
