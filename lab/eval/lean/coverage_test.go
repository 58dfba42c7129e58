package lean

import (
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

// Errors that are printed hold the truth, rows with few events and crowded tables included: the study's section in small. Of 400
// intervals 93 to 98 % hold in the study; 90 % leaves room for rows of one seed that err together.
func TestEnclosures(t *testing.T) {
	testutil.NeedRoot(t)
	o := traffic.LeanOptions{Packets: 40_000, Flows: 2_000, Heavy: 100, Victims: 20, Span: 8 * time.Second, Delay: 50 * time.Millisecond,
		Loss: 0.04, Late: 0.04, Again: 0.02}
	s, err := coverage.Run(t.Context(), []coverage.Cell{modelled("model", o, sized(nil, "40kB", "10kB"))}, 1, 2, "")
	if err != nil {
		t.Fatal(err)
	}
	all := s.Pooled()
	t.Logf("%d intervals, %.3f hold; %d bounds, %.3f hold", all.Intervals, all.Share(), all.Bounds, all.BoundShare())
	if all.Intervals < 300 || all.Share() < 0.9 {
		t.Errorf("%.3f of %d intervals hold the truth, want 0.9", all.Share(), all.Intervals)
	}
	if all.Bounds < 120 || all.BoundShare() < 0.95 {
		t.Errorf("%.3f of %d bounds hold the truth, want 0.95", all.BoundShare(), all.Bounds)
	}
	if all.Bare != 0 || all.Unjudged != 0 {
		t.Errorf("%d rows are off without an enclosure, %d are not in the truth", all.Bare, all.Unjudged)
	}
}
