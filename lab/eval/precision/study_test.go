package precision

import (
	"math"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func at(recall float64) result { return result{recall: []float64{recall}} }

// TestNeeded: between two sizes in the logarithm, and at both ends.
func TestNeeded(t *testing.T) {
	list := []result{at(.4), at(.6), at(.8)}
	for _, c := range []struct {
		recall, want float64
		more         bool
	}{{.3, 256, false}, {.5, 256 * math.Sqrt2, false}, {.8, 1024, false}, {.9, 65536, true}} {
		got, more := needed(list, c.recall)
		if math.Abs(got-c.want) > 1e-6 || more != c.more {
			t.Errorf("recall %.1f: %.1f entries, %v; want %.1f, %v", c.recall, got, more, c.want, c.more)
		}
	}
}

// TestWeighted: a prefix that was not found is estimated as 0, and counts as often as it has packets.
func TestWeighted(t *testing.T) {
	prefix := func(text string) heavy.Prefix { return heavy.Prefix{Src: netip.MustParsePrefix(text)} }
	exact := map[heavy.Prefix]float64{prefix("0.0.0.0/0"): 10, prefix("10.0.0.0/8"): 8, prefix("20.0.0.0/8"): 2}
	got := weighted(map[heavy.Prefix]float64{prefix("10.0.0.0/8"): 7}, exact)
	if want := (8*1 + 2*4) / 10.; got[0] != want || got[1] != 0 {
		t.Errorf("%v, want %.1f", got, want)
	}
}

// TestSections: what is small of the study runs, with a seed and few packets.
func TestSections(t *testing.T) {
	testutil.NeedRoot(t)
	for _, s := range eval.Studies() {
		for _, section := range s.Sections {
			if section.Name != "deterministic" && section.Name != "convergence" {
				continue
			}
			if err := section.Run(t.Context(), eval.NewPage(t.TempDir(), "x", true, t.Logf)); err != nil {
				t.Errorf("%s: %v", section.Name, err)
			}
		}
	}
}
