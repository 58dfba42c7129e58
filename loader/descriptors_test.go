package loader_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/tests/isolated"
)

// A start with too few descriptors is refused before anything is loaded, and never blamed on the verifier.
func TestDescriptorsAreChecked(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	objects := lab.FridgeObject(t, 4096)
	for free := 0; ; free += 4 {
		var inst *loader.Instance
		err := lab.WithFreeDescriptors(t, free, func() (err error) {
			if inst, err = loader.Load(objects, loader.Options{Seed: 1}); err != nil {
				return err
			}
			a, err := attach.Attach(inst, lab.Near, attach.Options{Direction: attach.Both})
			if err != nil {
				return fmt.Errorf("after it was loaded: %w", err)
			}
			return errors.Join(a.Close(), inst.Close())
		})
		if err == nil {
			t.Logf("%d free descriptors are enough", free)
			break
		}
		if !errors.Is(err, privilege.ErrDescriptors) || errors.Is(err, loader.ErrVerifier) || !strings.Contains(err.Error(), "ulimit -n") || inst != nil {
			t.Fatalf("%d free descriptors: %v", free, err)
		}
	}
	lab.NothingLeft(t, lab.Near)
}

func TestMain(m *testing.M) { lab.Main(m) }

// A loaded chain has one descriptor for each map that userspace reads, and for each program: none for maps that only programs use.
func TestDescriptorsOfALoadedChain(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	objects := lab.FridgeObject(t, 4096)
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := open()
	inst, err := loader.Load(objects, loader.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	const barrier, sections = 2, 1 // the barrier map; .bss of unused names
	if got, most := open()-before, len(inst.Maps())+len(inst.Programs())+barrier+sections; got > most {
		t.Errorf("%d descriptors are open for %d maps and %d programs, at most %d", got, len(inst.Maps()), len(inst.Programs()), most)
	}
}
