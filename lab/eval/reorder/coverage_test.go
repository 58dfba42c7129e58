package reorder

import (
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// Bounds that are printed hold the truth of all packets, those that nobody watched included: the study's section in small.
func TestEnclosures(t *testing.T) {
	testutil.NeedRoot(t)
	s, err := coverage.Run(t.Context(), []coverage.Cell{modelled()}, 1, 2, "")
	if err != nil {
		t.Fatal(err)
	}
	all := s.Pooled()
	t.Logf("%d bounds, %.3f hold", all.Bounds, all.BoundShare())
	if all.Bounds < 100 || all.BoundShare() < 0.95 || all.Intervals != 0 {
		t.Errorf("%.3f of %d bounds hold the truth, want 0.95 of 100; %d intervals, want none", all.BoundShare(), all.Bounds, all.Intervals)
	}
}
