package replay

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// attachedTo counts this system's XDP links of a program.
func attachedTo(t *testing.T, prog *ebpf.Program) (n int) {
	t.Helper()
	info, err := prog.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, ok := info.ID()
	if !ok {
		t.Skip("the kernel does not number programs")
	}
	links := new(link.Iterator)
	defer links.Close()
	for links.Next() {
		if l, err := links.Link.Info(); err == nil && l.Program == id {
			n++
		}
	}
	if err := links.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// A replay's driver is attached once, to nothing that has packets, until the replay is closed.
func TestReplayIsHeld(t *testing.T) {
	testutil.NeedRoot(t)
	inst, err := loader.Load(nil, loader.Options{Seed: 1, Replay: true})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	r, err := New(inst, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Batched() {
		r.Close()
		t.Skip("no batches on this kernel")
	}
	driver, err := r.driver.Programs[replayDriver].Clone()
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	if n := attachedTo(t, driver); n != 1 {
		t.Errorf("the driver is attached %d times during a replay, want once", n)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := attachedTo(t, driver); n != 0 {
		t.Errorf("the driver is attached %d times after a replay", n)
	}
}

func TestMain(m *testing.M) { testutil.Main(m) }
