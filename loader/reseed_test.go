package loader_test

import (
	"errors"
	"testing"

	"github.com/xdpmon/xdpmon/bpf/reorder"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// Reseed refuses sizes and constants that it cannot change.
func TestReseedRefuses(t *testing.T) {
	testutil.NeedRoot(t)
	object := func(entries uint32, constant any) loader.Object {
		spec, err := reorder.LoadReorder()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(maps.SetEntries(spec, "reorder_id_array", entries), maps.SetConstant(spec, "reorder_definition", constant)); err != nil {
			t.Fatal(err)
		}
		return loader.Object{Name: "reorder", Spec: spec}
	}
	inst, err := loader.Load([]loader.Object{object(64, uint32(1))}, loader.Options{Replay: true, Proven: true, Loose: []string{"hash_seed", "hash_keys"}})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	if err := inst.Reseed(2, []loader.Object{object(64, uint32(1))}); err != nil {
		t.Errorf("another seed: %v", err)
	}
	for name, o := range map[string]loader.Object{"size": object(128, uint32(1)), "constant": object(64, uint32(2))} {
		if err := inst.Reseed(2, []loader.Object{o}); !errors.Is(err, loader.ErrNotReseedable) {
			t.Errorf("another %s: %v, want ErrNotReseedable", name, err)
		}
	}
}
