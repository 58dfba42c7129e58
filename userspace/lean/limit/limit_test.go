package limit

import "testing"

// The limit follows the reports, increases if there are too many, and is removed when the link is quiet again.
func TestLimiter(t *testing.T) {
	l := New(1024, 10)
	if l.During(200); l.shift != noLimit {
		t.Errorf("200 reports of 1024: limit 2^-%d", l.shift)
	}
	if l.During(300); l.shift != 10 {
		t.Errorf("300 reports of 1024 in the window: 2^-%d, want 2^-10", l.shift)
	}
	if l.During(5000); l.shift != 9 {
		t.Errorf("5000 reports: 2^-%d, want 2^-9", l.shift)
	}
	if l.After(3000); l.shift != 8 {
		t.Errorf("3000 reports in a window: 2^-%d, want 2^-8", l.shift)
	}
	if l.After(400); l.shift != 9 {
		t.Errorf("400 reports in a window: 2^-%d, want 2^-9", l.shift)
	}
	if l.After(100); l.shift != noLimit {
		t.Errorf("100 reports in a window: 2^-%d, want no limit", l.shift)
	}
	f := Fixed(1024, 13)
	f.During(1 << 20)
	if f.After(1 << 20); f.shift != 13 {
		t.Errorf("the walk's limit moved to 2^-%d", f.shift)
	}
}
