package delay

import "testing"

// What does not vary is what it is on average, also where a step of the integral meets it.
func TestNoVarianceNoBulge(t *testing.T) {
	s := spread{variance: 0, mean: 1}
	if b := s.bulge(part{n: 5, mean: 1, low: 0, high: 24}); b != 1 {
		t.Errorf("bulge %g, want 1", b)
	}
	s.variance = 4
	if b := s.bulge(part{n: 1, mean: 1, low: 0, high: 24}); b != 1 {
		t.Errorf("one sample's bulge %g, want 1", b)
	}
	if b := s.bulge(part{n: 100, mean: 6, low: 0, high: 24}); !(b > 1.5) {
		t.Errorf("bulge %g of what varies by a factor of seven", b)
	}
}
