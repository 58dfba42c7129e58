package tune

import (
	"math"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// The word has the present classes, the least ones of the three settings that are known, and the number modulo 16.
func TestWord(t *testing.T) {
	tuner := New(64)
	for n, c := range []struct {
		classes [layout.Most]int
		word    uint64
	}{{[4]int{5, 6, 7, 8}, 1<<32 | 0x6000<<16 | 0x8765}, {[4]int{5, 5, 5, 9}, 2<<32 | 0x6000<<16 | 0x9555}, {[4]int{6, 6, 6, 6}, 3<<32 | 0x6555<<16 | 0x6666}} {
		if tuner.Change(c.classes, int64(n)+1); tuner.Word() != c.word {
			t.Errorf("setting %d: word %#x, want %#x", n+1, tuner.Word(), c.word)
		}
	}
	for n := range 20 {
		tuner.Change([4]int{}, int64(n)+4)
	}
	if h := tuner.History(); len(h) != Planes || tuner.Word()>>32 != 23%16 || h.Now().Plane() != 23%4 {
		t.Errorf("%+v: word %#x", h, tuner.Word())
	}
}

// A snapshot has the settings of its window by their age, and refuses what no instance stores.
func TestHistory(t *testing.T) {
	h := History{{Classes: [4]int{0, 0, 0, 6}}, {Number: 1, Since: 500, Classes: [4]int{1, 2, 3, 4}}}
	s := snapshot.New(snapshot.Head{}, report.Window{Start: 1000, End: 2000})
	h.Into(s)
	s.Window.Start, s.Window.End = 11_000, 12_000 // another clock
	r := s.Read()
	got := HistoryOf(r, s.Window.End)
	if r.Err() != nil || len(got) != 2 || got[1] != (Setting{Number: 1, Since: 10_500, Classes: [4]int{1, 2, 3, 4}}) {
		t.Errorf("%+v, %v", got, r.Err())
	}
	for name, words := range map[string][]uint64{"none": nil, "class": {0, 0, 0, 0, 0, 16}, "gap": {0, 9, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0}, "five": make([]uint64, 30), "width": {1}} {
		s.Words[words0] = words
		if r := s.Read(); len(HistoryOf(r, 1)) == 0 || r.Err() == nil {
			t.Errorf("%s: read", name)
		}
	}
	// Requests of a window from 11,000 to 12,000 with a delay of 1,000 were sent from 10,000 on, half of them before the change.
	for delay, want := range map[float64]float64{0: 1, 500: 1, 1000: 0.5, 1500: 0} {
		if share := got.Shares(delay, 11_000, 12_000); math.Abs(share[1]-want) > 1e-12 || math.Abs(share[0]+share[1]-1) > 1e-12 {
			t.Errorf("delay %g: shares %v, want %g", delay, share, want)
		}
	}
	if share := got.Shares(0, 10_000, 10_000); share[0] != 1 {
		t.Errorf("an empty window: %v", share)
	}
}

const words0 = words // the name is shadowed in the test

// spectrum has n responses in each of ten octaves up to longest ns.
func spectrum(longest float64, n float64) *delay.Spectrum {
	s := delay.NewSpectrum(delay.NewScale(4, 64, false))
	for k := range 10 {
		bin := s.Scale.Bin(longest * math.Exp2(-float64(k)/2))
		s.Mass[bin], s.Square[bin], s.Raw[bin] = n, n, n
	}
	s.Predicted = make([]float64, len(s.Mass))
	for bin := range s.Predicted {
		s.Predicted[bin] = 1
	}
	return s
}

// The choice follows rate and delays: an idle fridge admits all, one that is overwritten within the delays a share as section 3.3 has it, and little changes change
// nothing.
func TestNext(t *testing.T) {
	const slots = 4096
	tuner, end := New(slots), int64(1e9)
	next := func(requests uint64, longest float64) bool {
		end += 1e9
		return tuner.Next(Window{End: end, NS: 1e9, Requests: requests, Delays: spectrum(longest, 100)})
	}
	if !next(1000, 1e6) || tuner.History().Now().Classes != [4]int{} {
		t.Errorf("idle: %v", tuner.History().Now())
	}
	if next(1100, 1.1e6) {
		t.Errorf("much the same: %v", tuner.History().Now())
	}
	if !next(1e6, 1e9) {
		t.Error("a thousand times the load, a thousand times the delays: no change")
	}
	now := tuner.History().Now()
	if lives := 1e6 * now.P(0) / slots; lives < 0.2 || lives > 4 {
		t.Errorf("%v: %.2g lives of the first part in the longest delay", now, lives)
	}
	if lives := 1e6 * now.P(3) / slots; lives > spare {
		t.Errorf("%v: %.2g lives of the last part in the longest delay", now, lives)
	}
	if now.Since != end || now.Number != 2 {
		t.Errorf("%+v at %d", now, end)
	}
	if next(0, 1e6) || tuner.Next(Window{End: end, NS: 0, Requests: 5, Delays: spectrum(1e6, 100)}) {
		t.Error("a window without requests, or without length, changes the setting")
	}
}

// A setting is forgotten only when its records are out.
func TestWaits(t *testing.T) {
	tuner := New(4096)
	for n := range 2 {
		tuner.Change([4]int{9, 9, 9, 9}, int64(n))
	}
	w := Window{End: 1e9, NS: 1e9, Requests: 1000, Delays: spectrum(1e6, 100), Samples: []float64{1, 0, 0}}
	if tuner.Next(w) || !tuner.Waiting {
		t.Error("a setting with samples in the window was forgotten")
	}
	if w.Samples[0] = 0; !tuner.Next(w) || tuner.Waiting {
		t.Error("a setting without samples was not forgotten")
	}
}

// Few samples do not replace what is known, and slow responses that may be unseen are allowed for.
func TestLearns(t *testing.T) {
	tuner := New(64)
	tuner.learn(spectrum(1e6, 100))
	if len(tuner.known) == 0 || tuner.longest < 9e5 || tuner.longest > 1.2e6 {
		t.Fatalf("%d points, %g", len(tuner.known), tuner.longest)
	}
	few := spectrum(8e6, 1)
	tuner.learn(few)
	total := 0.0
	for _, p := range tuner.known {
		total += p.mass
	}
	if !slices.IsSortedFunc(tuner.known, func(a, b point) int { return int(a.ns - b.ns) }) || math.Abs(total-1) > 1e-9 || tuner.longest < 4e6 {
		t.Errorf("%v, longest %g", tuner.known, tuner.longest)
	}
	if tuner.learn(delay.NewSpectrum(few.Scale)); math.IsNaN(tuner.longest) {
		t.Error("nothing makes the longest delay unknown")
	}
}
