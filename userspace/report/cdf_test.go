package report

import (
	"math"
	"testing"
)

func near(a, b, within float64) bool {
	return math.Abs(a-b) <= within || math.IsNaN(a) && math.IsNaN(b)
}

func TestShareAndAtAreInverse(t *testing.T) {
	d := logNormal("d", 5000, 3e7, 0.7)
	for q := 0.01; q < 1; q += 0.01 {
		if back := d.Share(d.At(q)); math.Abs(back-q) > 1e-9 {
			t.Errorf("Share(At(%v)) = %v", q, back)
		}
	}
}

func TestAtEdges(t *testing.T) {
	d := Distribution{Buckets: []Bucket{{Upper: 10, Cumulative: 0}, {Upper: 20, Cumulative: 4}, {Upper: 40, Cumulative: 4}, {Upper: math.Inf(1), Cumulative: 5}}}
	for q, want := range map[float64]float64{0: 10, 0.4: 10 * math.Sqrt2, 0.8: 20, 0.9: 40, 1: 40} {
		if got := d.At(q); !near(got, want, 1e-9) {
			t.Errorf("At(%v) = %v, want %v", q, got, want)
		}
	}
	if got := (Distribution{}).At(0.5); !math.IsNaN(got) {
		t.Errorf("At of an empty distribution = %v, want NaN", got)
	}
	if got := d.Share(1e9); !near(got, 0.8, 1e-9) {
		t.Errorf("Share in the open bucket = %v, want 0.8", got)
	}
}
