// Package hhh registers the twin of the hierarchical heavy hitters.
package hhh

import (
	"fmt"

	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "hhh", Algorithm: "hhh",
		Window:      &twin.Flip{Table: "hhh.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Registers:   true,
		Coins:       twin.HighBits,
		Unreachable: unreachable,
		Forms:       []twin.Form{{}, {Name: "small", Generated: true, Set: map[string]string{"entries": "256", "initial": "8"}}},
		Start:       sizes,
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

// sizes of every order, of entries that hold nobody's key: what admission is decided by. They are less than 2^31 apart, for the twin
// tells which one is smaller by a sign.
func sizes(register string, i int) uint64 {
	switch {
	case register == "hhh_c0" && i%64 != 63:
		n := uint64(i) * 9 % 224
		return (8 + n%8) << (n / 8)
	case register == "hhh_c1" && i%4 != 3:
		return 1<<31 - 1
	}
	return 0
}

// unreachable entries: no counter is as small as seven, which the value that all begin with is above, and none is 2^31 above another.
var unreachable = func() (rows []string) {
	row := func(low uint64, mask uint32) {
		rows = append(rows, fmt.Sprintf("admission [{%d %d 0 false}]", low, mask))
	}
	for n := range uint64(8) {
		row(n, 1<<32-1)
		row((8+n)<<28, 15<<28)
	}
	return rows
}()
