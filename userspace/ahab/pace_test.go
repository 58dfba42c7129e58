package ahab

import (
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// What arrives cannot wait, and what the switch does has no queue: both are refused with what to do instead.
func TestPaceRefused(t *testing.T) {
	for want, c := range map[string]struct {
		set     map[string]string
		arrives bool
	}{
		"--direction egress": {map[string]string{"act": "pace", "capacity": "5Mbit"}, true},
		"ahab.form":          {map[string]string{"act": "pace", "form": "table"}, false},
		"ahab.update":        {map[string]string{"act": "pace", "update": "aimd"}, false},
		"ahab.epoch":         {map[string]string{"act": "pace", "epoch": "2ms"}, false},
	} {
		v, err := algo.NewValues(Name, params, c.set)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := descriptor().New(v, algo.Env{Arrives: c.arrives}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "ahab.act=pace") {
			t.Errorf("%v: %v, want %q", c.set, err, want)
		}
	}
}

// An instance that paces states by which setting, and how large aggregates may be: of the slowest slice three fit into the horizon.
func TestSteers(t *testing.T) {
	const slices = `{"slices":[{"name":"a","ceiling":"80Mbit","match":{"vlans":[1]}},{"name":"b","ceiling":"8Mbit","match":{"vlans":[2]}}]}`
	for _, c := range []struct {
		set  map[string]string
		want algo.Steering
	}{
		{map[string]string{"capacity": "5Mbit"}, algo.Steering{}},
		{map[string]string{"act": "pace", "capacity": "5Mbit", "dry-run": "true"}, algo.Steering{}},
		{map[string]string{"act": "pace", "capacity": "8Mbit", "horizon": "300ms"}, algo.Steering{By: "ahab.act=pace", Delays: true, Aggregate: 100_000}},
		{map[string]string{"act": "pace", "config": slices, "horizon": "300ms"}, algo.Steering{By: "ahab.act=pace", Delays: true, Aggregate: 100_000}},
		{map[string]string{"act": "pace", "capacity": "8kbit", "horizon": "1ms"}, algo.Steering{By: "ahab.act=pace", Delays: true, Aggregate: fullPacket}},
	} {
		v, err := algo.NewValues(Name, params, c.set)
		if err != nil {
			t.Fatal(err)
		}
		i, err := descriptor().New(v, algo.Env{})
		if err != nil {
			t.Fatal(err)
		}
		if got := i.(algo.Steerer).Steers(); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.set, got, c.want)
		}
	}
}

// An epoch is as long as its sums have room for.
func TestGrid(t *testing.T) {
	for rate, want := range map[string]uint32{"100Mbit": 26, "10Gbit": 26, "100Gbit": 23, "400Gbit": 21} {
		v, err := algo.NewValues(Name, params, map[string]string{"capacity": rate, "tau": "1ms"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := newConfig(v, algo.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.grid(); got != want {
			t.Errorf("%s: epochs of 2^%d ns, want 2^%d", rate, got, want)
		}
	}
}
