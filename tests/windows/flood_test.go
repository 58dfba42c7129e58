package windows

import (
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/mutator"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// load loads an instance that is closed with the test.
func load(t *testing.T, opts loader.Options, objects ...loader.Object) *loader.Instance {
	t.Helper()
	inst, err := loader.Load(objects, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inst.Close(); err != nil {
			t.Error(err)
		}
	})
	return inst
}

// startFlood sends packets to an instance on all cores until the test ends, or until total.
func startFlood(t *testing.T, inst *loader.Instance, opts mutator.Options, size mutator.Batch) *mutator.Flood {
	t.Helper()
	f, err := mutator.StartFlood(inst, opts, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// total stops a flood and returns what it sent.
func total(t *testing.T, f *mutator.Flood) mutator.Sent {
	t.Helper()
	sent, err := f.Stop()
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// underLoad calls f again and again for a while, and so often that it proves something; or until it fails the test.
func underLoad(t *testing.T, length time.Duration, f func()) (times int) {
	t.Helper()
	const enough = 5
	if testing.Short() {
		length /= 4
	}
	for started := time.Now(); (time.Since(started) < length || times < enough) && !t.Failed(); times++ {
		f()
	}
	return times
}
