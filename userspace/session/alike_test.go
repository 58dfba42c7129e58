package session

import (
	"maps"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
)

// TestAlike: equal objects have the same parts and are still two objects; others have parts of their own, and few are kept.
func TestAlike(t *testing.T) {
	d, err := algo.Lookup("fridge")
	if err != nil {
		t.Fatal(err)
	}
	of := func(fridges string, seed uint64) *ebpf.CollectionSpec {
		t.Helper()
		s, err := d.Select(map[string]string{"fridges": fridges}, algo.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{cfg: Config{Seed: seed}, groups: []*group{{}}}
		m, err := r.member(s, false)
		if err != nil {
			t.Fatal(err)
		}
		alike([]*member{m})
		return m.object.Spec
	}
	part := func(s *ebpf.CollectionSpec) *ebpf.MapSpec { return s.Maps["fridge_entries"] }
	first, again := of("4096@1", 7), of("4096@1", 7)
	if first == again || part(first) != part(again) {
		t.Error("two equal objects are one, or have parts of their own")
	}
	if other := of("8192@1", 7); part(other) == part(first) || part(other).MaxEntries == part(first).MaxEntries {
		t.Error("objects with other parameters have the same parts")
	}
	for n := range uint64(3 * mostConfigured) {
		of([]string{"1024@1", "512@1", "256@1", "128@1", "64@1"}[n%5], 7)
	}
	if n := len(slices.Concat(slices.Collect(maps.Values(configured.of))...)); n > mostConfigured {
		t.Errorf("%d objects are kept, %d at most", n, mostConfigured)
	}
}
