// Package admission is what the twins of precision and hhh share: a key enters in a second pass, with a probability by the smaller counter.
package admission

import (
	"fmt"

	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// Count is a counter of the host beside the actions of a twin's outcome.
func Count(name string, index int, actions ...string) twin.Count {
	return twin.Count{Table: name + ".outcome.outcomes", Actions: actions, Host: name + "_counts", Index: index}
}

// Sizes of every order, of entries that hold nobody's key: what admission is decided by. They are less than 2^31 apart, for the twin
// tells which one is smaller by a sign.
func Sizes(name string) func(register string, i int) uint64 {
	return func(register string, i int) uint64 {
		switch {
		case register == name+"_c0" && i%64 != 63:
			n := uint64(i) * 9 % 224
			return (8 + n%8) << (n / 8)
		case register == name+"_c1" && i%4 != 3:
			return 1<<31 - 1
		}
		return 0
	}
}

// Unreachable entries: no counter is as small as seven, which the value that all begin with is above, and none is 2^31 above another.
func Unreachable() (rows []string) {
	row := func(low uint64, mask uint32) {
		rows = append(rows, fmt.Sprintf("admission [{%d %d 0 false}]", low, mask))
	}
	for n := range uint64(8) {
		row(n, 1<<32-1)
		row((8+n)<<28, 15<<28)
	}
	return rows
}
