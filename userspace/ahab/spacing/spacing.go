// Package spacing adapts how far a TCP flow exceeds the limit between two losses, in bytes that a coin would have taken from it.
//
// A window of W segments at the limit that is cut to .7 and grows by half a segment a round trip has to reach 1.18 W for its mean to be W: it is
// beyond for .34 W round trips, and .03 W^2 segments. One that is halved sends .06 W^2 beyond. What holds a flow at a rate grows with the square of
// rate times round trip time, which is not known here. So the distance is what a loop finds: where slices with flows above their
// limit do not use their capacity, losses are too frequent; where more passes than the capacity, too rare. How far a window grows is the root of
// the distance: half of the distance, or twice of it, changes the use by some percent.
package spacing

import "math"

// Least and Most distances, in bytes: a full segment, and what nobody reaches.
const (
	Least = 1514
	Most  = 1 << 30
)

const (
	little = 0.98 // of the capacity: below it losses are too frequent
	much   = 1.03 // above it too rare; between, other users may fill what there is
	up     = 0.06 // a tick, of what is missing; a capacity is one
	down   = 0.15 // ... of what is too much
	most   = 0.05 // a tick
	enough = 0.01 // of the capacity: a ceiling that refuses less is what bursts do to it
	nearer = 0.02 // a tick, where a ceiling refuses more
)

// Slice is what a slice did lately, in bytes a second, averaged over some round trips.
type Slice struct {
	Offered, Passed float64
	Refused         float64 // by its ceiling, or that of all slices
	Capacity        float64
	Lost            bool // has it had losses or marks in that time? Without them the distance shows nothing and stays
}

// Next is the distance after a tick of 10 ms.
func Next(old uint32, s Slice) uint32 {
	if s.Capacity <= 0 || !s.Lost || !(s.Offered > 0) || math.IsInf(s.Offered+s.Passed, 0) {
		return old
	}
	change := 0.0
	switch use := s.Passed / s.Capacity; {
	case s.Refused > enough*s.Capacity:
		change = -nearer
	case use < little:
		change = min(most, up*(little-use))
	case use > much:
		change = max(-most, down*(much-use))
	}
	return uint32(max(Least, min(Most, math.Ceil(float64(old)*(1+change)))))
}
