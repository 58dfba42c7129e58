package ahab

import (
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// TestSections: what is small of the study runs, and weights are respected.
func TestSections(t *testing.T) {
	testutil.NeedRoot(t)
	for _, s := range eval.Studies() {
		for _, section := range s.Sections {
			if section.Name != "weights" {
				continue
			}
			if err := section.Run(t.Context(), eval.NewPage(t.TempDir(), "x", true, t.Logf)); err != nil {
				t.Errorf("%s: %v", section.Name, err)
			}
		}
	}
}
