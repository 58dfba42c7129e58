package loader_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/isolated"
)

// A parser that was loaded for fixed algorithms serves those that request no more of it, and refuses others: it would leave their fields empty.
func TestFixedParser(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	objects := lab.FridgeObject(t, 4096)
	sizes := map[bool]uint32{}
	for _, fixed := range []bool{false, true} {
		inst, err := loader.Load(objects, loader.Options{Seed: 1, Replay: true, Fixed: fixed})
		lab.NoError(t, err)
		greedy := slices.Clone(objects)
		greedy[0].Needs |= maps.NeedQName
		lab.NoError(t, inst.Replace(greedy)) // no entry program yet
		lab.NoError(t, inst.Replace(objects))
		entry, err := inst.Entry(loader.EntryConfig{Replay: true})
		lab.NoError(t, err)
		info, err := entry.Info()
		lab.NoError(t, err)
		size, err := info.TranslatedSize()
		lab.NoError(t, err)
		sizes[fixed] = uint32(size)
		if err := inst.Replace(greedy); errors.Is(err, loader.ErrFixed) != fixed || !fixed && err != nil {
			t.Errorf("fixed %v: %v", fixed, err)
		}
		lab.NoError(t, inst.Replace(objects))
		lab.NoError(t, entry.Close())
		lab.NoError(t, inst.Close())
	}
	if sizes[true] >= sizes[false] {
		t.Errorf("the parser for fixed algorithms has %d bytes, for any %d", sizes[true], sizes[false])
	}
}
