package lean

import (
	"slices"
	"strings"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
)

// Who is added where others have been measuring begins in the bank that packets write to.
func TestStartsInABank(t *testing.T) {
	v, err := algo.NewValues("lean", Descriptor().Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	i, err := Descriptor().New(v, algo.Env{})
	if err != nil {
		t.Fatal(err)
	}
	var told algo.WindowOpener = i.(*instance)
	for _, bank := range []int{1, 0} {
		if told.Begin(bank); i.(*instance).bank != bank {
			t.Errorf("begun in bank %d, looks at %d", bank, i.(*instance).bank)
		}
	}
}

func configured(t *testing.T, set map[string]string) *config {
	t.Helper()
	s, v := snapshottest.New(t, Name, set)
	c, err := newConfig(v, algo.SetupOf(s))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The mean has rows of its own, which are included in the memory.
func TestMemoryOfTheMean(t *testing.T) {
	without, with := configured(t, map[string]string{"stat": "latency"}), configured(t, map[string]string{"stat": "latency", "mean": "true"})
	if more := with.used() - without.used(); more != 4*sketch.Rows*with.layouts[latency].columns || more <= 0 {
		t.Errorf("%d bytes without the mean, %d with it, in %d columns", without.used(), with.used(), with.layouts[latency].columns)
	}
}

// Notes are of what has happened.
func TestNotesOfNothing(t *testing.T) {
	e := &estimator{config: configured(t, nil)}
	n := make(counts, bpf.LeanLeanCounterLEAN_COUNTS)
	full := func() int {
		return len(slices.DeleteFunc(e.notes(loss, ranked{}, n), func(note string) bool { return !strings.Contains(note, "the ring was full") }))
	}
	if full() != 0 {
		t.Error("a full ring, of nothing")
	}
	n[int(bpf.LeanLeanCounterLEAN_UNREPORTED)+int(loss)] = 1
	if full() != 1 {
		t.Error("no word of a flow that was not reported")
	}
}
