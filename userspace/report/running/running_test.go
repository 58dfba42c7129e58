package running

import (
	"testing"
	"time"
)

// The bar is of the shortest windows; what is over of longer ones is named by algorithm, each from the end of its last window.
func TestText(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	w := Windows{Started: at(100)}
	if text := w.Text(at(105), false, 10); text != "" {
		t.Errorf("of no algorithm: %q", text)
	}
	w.Add("whole", 0)
	if text := w.Text(at(105), false, 10); text != "" {
		t.Errorf("of one window until the end: %q", text)
	}
	w.Add("fridge", 10e9)
	w.Add("precision", 10e9)
	w.Add("lean", 60e9)
	for _, c := range []struct {
		now  int
		want string
	}{
		{105, "  window [#####.....] 5 s of 10 s, lean 5 s of 1:00 min"},
		{112, "  window [##........] 2 s of 10 s, lean 12 s of 1:00 min"},
		{165, "  window [##########] 10 s of 10 s, lean 4 s of 1:00 min"},
	} {
		switch c.now {
		case 112:
			w.Ended("fridge", at(110))
			w.Ended("precision", at(110))
		case 165:
			w.Ended("lean", at(161))
		}
		if text := w.Text(at(c.now), false, 10); text != c.want {
			t.Errorf("at %d: %q, want %q", c.now, text, c.want)
		}
	}
}
