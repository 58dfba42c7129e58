package beaucoup

import (
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// The interval of an alert's count holds the truth: the study's section in small, 20 scanners a seed.
func TestEnclosures(t *testing.T) {
	testutil.NeedRoot(t)
	list := cells(eval.NewPage(t.TempDir(), "coverage", true, t.Logf))
	list = slices.DeleteFunc(list, func(c coverage.Cell) bool { return c.Name != "scans" })
	list[0].Configs = list[0].Configs[:1]
	s, err := coverage.Run(t.Context(), list, 1, 4, "")
	if err != nil {
		t.Fatal(err)
	}
	all := s.Pooled()
	t.Logf("%d intervals, %.3f hold", all.Intervals, all.Share())
	if all.Intervals < 50 || all.Share() < 0.88 {
		t.Errorf("%.3f of %d intervals hold the truth, want 0.88 of 50", all.Share(), all.Intervals)
	}
}
