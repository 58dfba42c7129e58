package algo

// Paced is a Controller that a replay ticks, too, by the packets' time. A tick of a replay costs some ten milliseconds, so
// that the instance says when it wants one, and not every Interval.
type Paced interface {
	Controller
	// NextTick is the time of the first tick behind now, in a window that began at start; math.MaxInt64 for none. ns.
	NextTick(start, now int64) int64
}
