// Package precision registers the twin of PRECISION.
package precision

import "github.com/xdpmon/xdpmon/p4/tna/twin"

func init() {
	twin.Register(&twin.Twin{
		Name: "precision", Algorithm: "precision",
		Window:    &twin.Flip{Table: "precision.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Registers: true,
		Coins:     twin.HighBits,
		Forms:     []twin.Form{{}, {Name: "small", Generated: true, Set: map[string]string{"entries": "256", "initial": "8"}}},
		Counts: []twin.Count{
			count(3, "matched"),
			count(4, "admitted"),
			count(5, "written"),
			count(0, "matched", "admitted", "passed_over"),
			count(1, "matched", "admitted", "passed_over"),
		},
		Also:        []twin.Count{count(2, "no_key")},
		Start:       large,
		Differences: []twin.Difference{twin.Echoes},
	})
}

func count(index int, actions ...string) twin.Count {
	return twin.Count{Table: "precision.outcome.outcomes", Actions: actions, Host: "precision_counts", Index: index}
}

// large counters, of entries that hold nobody's key, beside small ones.
func large(register string, i int) uint64 {
	if register == "precision_c0" && i%3 == 0 && i < 1<<10 {
		return 1<<30 + uint64(i)
	}
	return 0
}
