// Package hhh registers the twin of the hierarchical heavy hitters.
package hhh

import "github.com/xdpmon/xdpmon/p4/tna/twin"

func init() {
	twin.Register(&twin.Twin{
		Name: "hhh", Algorithm: "hhh",
		Window:    &twin.Flip{Table: "hhh.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Registers: true,
		Coins:     twin.HighBits,
		Forms:     []twin.Form{{}, {Name: "small", Generated: true, Set: map[string]string{"entries": "256", "initial": "8"}}},
		Start:     large,
		Counts: []twin.Count{
			count(4, "matched"),
			count(5, "admitted"),
			count(6, "written"),
			count(2, "matched", "admitted", "passed_over"),
			count(0, "matched", "admitted", "passed_over"),
		},
		Also: []twin.Count{count(3, "no_key")},
	})
}

func count(index int, actions ...string) twin.Count {
	return twin.Count{Table: "hhh.outcome.outcomes", Actions: actions, Host: "hhh_counts", Index: index}
}

// large counters, of entries that hold nobody's key, beside small ones.
func large(register string, i int) uint64 {
	if register == "hhh_c0" && i%3 == 0 && i < 1<<10 {
		return 1<<30 + uint64(i)
	}
	return 0
}
