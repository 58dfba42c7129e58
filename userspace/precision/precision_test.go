package precision

import (
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

func values(t *testing.T, set map[string]string) algo.Values {
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRefusals: what cannot be is refused with the value and what is allowed.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		set      map[string]string
		env      algo.Env
		contains string
	}{
		{map[string]string{"ways": "3", "entries": "4096"}, algo.Env{}, "multiples of the 3 ways"},
		{map[string]string{"ways": "3", "entries": "4098"}, algo.Env{Setup: algo.Setup{Hash: algo.HashCRC}}, "power of two"},
		{map[string]string{"delay": "10"}, algo.Env{}, "only a replay"},
	} {
		_, err := descriptor().New(values(t, c.set), c.env)
		if err == nil || !strings.Contains(err.Error(), c.contains) {
			t.Errorf("%v: %v, want %q", c.set, err, c.contains)
		}
	}
	if _, err := descriptor().P4(values(t, map[string]string{"family": "4", "ways": "4"})); err == nil || !strings.Contains(err.Error(), "set precision.ways=4: the P4 twin has 2") {
		t.Errorf("a twin of four ways: %v", err)
	}
}

// TestPlan: entries fit the memory that was given, and too little memory is refused with what is needed.
func TestPlan(t *testing.T) {
	args := algo.PlanArgs{RatePerSecond: 1e6, MemoryBytes: 1 << 20, Extra: map[string]string{"cpus": "2"}}
	b, err := descriptor().Plan(values(t, nil), args)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	for _, v := range b.Values {
		found[v.Name] = v.Value
	}
	if found["entries"] != 4096 || found["register_bytes"].(int64) > args.MemoryBytes {
		t.Errorf("plan %v", found)
	}
	args.MemoryBytes = 1000
	if _, err := descriptor().Plan(values(t, nil), args); err == nil || !strings.Contains(err.Error(), "at least") {
		t.Errorf("too little memory: %v", err)
	}
}

// TestBudget: the initial value bounds the share of second passes, in bytes for packets of full size.
func TestBudget(t *testing.T) {
	c, err := newConfig(values(t, map[string]string{"count": "bytes", "initial": "100"}), algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	if c.ways.Initial != 100*fullPacket || c.budget < 1./101 || c.budget > .02 {
		t.Errorf("initial %d, budget %.4f", c.ways.Initial, c.budget)
	}
}
