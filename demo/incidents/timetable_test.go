package incidents

import (
	"context"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/stage"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// Incidents do not overlap, each has a finding of its own, and the last one is over when the first begins again.
func TestTimetable(t *testing.T) {
	seen := map[string]bool{}
	for n, i := range All {
		if i.Slot < Lasting+10*time.Second || i.What == "" || seen[i.Expect()] {
			t.Errorf("incident %d: %+v", n, i)
		}
		seen[i.Expect()] = true
		if end := Begins(n) + i.Slot; n+1 < len(All) && Begins(n+1) != end || n+1 == len(All) && First+Round() != end {
			t.Errorf("incident %d ends at %v", n, end)
		}
	}
	if len(All) < 10 || Begins(0) != First {
		t.Errorf("%d incidents from %v on", len(All), Begins(0))
	}
}

// Every incident can be staged; afterwards the network is unchanged, after each one and after all of them.
func TestIncidentsEnd(t *testing.T) {
	testutil.NeedRoot(t)
	w, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	for _, i := range All {
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
		err := i.play(ctx, w)
		stop()
		if err != nil {
			t.Errorf("%s: %v", i.What, err)
		}
		for at, a := range w.answers {
			if late, deaf := a.Late(); late != 0 || deaf {
				t.Errorf("%s: %v stays %v late, deaf: %v", i.What, at, late, deaf)
			}
		}
		for n, way := range []*stage.Way{w.upNear, w.downNear, w.upFar, w.downFar} {
			if left := way.Faults(); len(left) > 0 {
				t.Errorf("%s: direction %d keeps %v", i.What, n, left)
			}
		}
	}
}
