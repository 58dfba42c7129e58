// Package spacing adapts how many bytes a TCP flow above the limit sends between two losses.
//
// A window that halves at each loss sends 3/8 W^2 segments between two of them, and one that is cut to .7 fewer: what keeps a flow at a rate goes with
// the square of rate times round trip time, which nobody tells us. So the distance is what a loop finds: where slices with flows above their
// limit do not use their capacity, losses come too often; where more passes than the capacity, too seldom.
package spacing

import "math"

// Least and Most distances, in bytes: two full segments, and what nobody reaches.
const (
	Least = 3028
	Most  = 1 << 30
)

const (
	aim   = 0.97 // of the capacity: above it flows are above their limits all the time
	up    = 0.03 // a tick, of what is missing
	down  = 0.15 // ... of what is too much: a capacity is one
	most  = 0.05 // a tick
	begin = 0.3  // of the capacity: whose slice sends less is not kept by losses
)

// Next is the distance after a tick of 10 ms. offered and passed are bytes a second, averaged over some round trips; lost says whether the slice has
// had losses or marks in that time: without them the distance says nothing and stays.
func Next(old uint32, offered, passed, capacity float64, lost bool) uint32 {
	if capacity <= 0 || !lost || !(offered >= begin*capacity) || math.IsInf(offered+passed, 0) {
		return old
	}
	missing := aim - passed/capacity
	gain := up
	if missing < 0 {
		gain = down
	}
	factor := 1 + max(-most, min(most, gain*missing))
	return uint32(max(Least, min(Most, math.Ceil(float64(old)*factor))))
}
