package precision

import (
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// Intervals of flows and prefixes hold the truth: the study's section in small.
func TestEnclosures(t *testing.T) {
	testutil.NeedRoot(t)
	var cells []coverage.Cell
	for _, c := range Cells("") {
		if config := c.Configs[0].Name; c.Name == "quiet" && (config == "precision, 256 entries" || config == "hhh, 512 entries") {
			cells = append(cells, c)
		}
	}
	s, err := coverage.Run(t.Context(), cells, 1, 3, "")
	if err != nil {
		t.Fatal(err)
	}
	all := s.Pooled()
	t.Logf("%d intervals, %.3f hold", all.Intervals, all.Share())
	if len(cells) != 2 || all.Intervals < 200 || all.Share() < 0.9 {
		t.Errorf("%d cells: %.3f of %d intervals hold the truth, want 0.9 of 200", len(cells), all.Share(), all.Intervals)
	}
	if all.Unjudged != 0 {
		t.Errorf("%d rows are not in the truth", all.Unjudged)
	}
}
