// Package precision registers the twin of PRECISION.
package precision

import (
	"fmt"

	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "precision", Algorithm: "precision",
		Window:      &twin.Flip{Table: "precision.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Registers:   true,
		Coins:       twin.HighBits,
		Unreachable: unreachable,
		Forms:       []twin.Form{{}, {Name: "small", Generated: true, Set: map[string]string{"entries": "256", "initial": "8"}}},
		Counts: []twin.Count{
			count(3, "matched"),
			count(4, "admitted"),
			count(5, "written"),
			count(0, "matched", "admitted", "passed_over"),
			count(1, "matched", "admitted", "passed_over"),
		},
		Also:        []twin.Count{count(2, "no_key")},
		Start:       sizes,
		Differences: []twin.Difference{twin.Echoes},
	})
}

func count(index int, actions ...string) twin.Count {
	return twin.Count{Table: "precision.outcome.outcomes", Actions: actions, Host: "precision_counts", Index: index}
}

// sizes of every order, of entries that hold nobody's key: what admission is decided by. They are less than 2^31 apart, for the twin
// tells which one is smaller by a sign.
func sizes(register string, i int) uint64 {
	switch {
	case register == "precision_c0" && i%64 != 63:
		n := uint64(i) * 9 % 224
		return (8 + n%8) << (n / 8)
	case register == "precision_c1" && i%4 != 3:
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
