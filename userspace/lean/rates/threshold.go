package rates

import "math"

// Threshold is the delay from which on a delay is an event of latency. It is 0 as long as all flows find a place; then it follows the delays that find
// none, so that the flows in the table are those with the longest delays, and as many as it holds.
type Threshold struct {
	Slots int // words of the table
	Ticks uint32
	last  [2]uint64 // delays, and long ones without place in this bank, when it was last read
}

const (
	fewestDelays = 50   // between two steps
	mostCrowded  = .03  // share of the delays that find no place above which the threshold rises
	leastCrowded = .01  // ... below which it falls
	step         = 1.15 // factor
)

// Follow moves the threshold by the counters of a bank: delays, their sum in ticks, and long ones without place. closed: the window is over. It reports
// whether it has moved.
func (t *Threshold) Follow(delays, sum, without uint64, closed bool) bool {
	before, more := t.Ticks, float64(delays-min(t.last[0], delays))
	if more >= fewestDelays {
		crowded := float64(without-min(t.last[1], without)) / more
		t.last = [2]uint64{delays, without}
		t.move(crowded, without, float64(sum)/float64(delays))
	}
	if closed {
		t.last = [2]uint64{}
	}
	return t.Ticks != before
}

func (t *Threshold) move(crowded float64, without uint64, mean float64) {
	switch {
	case t.Ticks == 0:
		if without > uint64(t.Slots/4) {
			t.Ticks = 1 + uint32(mean)
		}
	case crowded > mostCrowded:
		t.Ticks = uint32(min(math.Ceil(float64(t.Ticks)*step), 1<<19))
	case crowded < leastCrowded:
		t.Ticks = uint32(float64(t.Ticks) / step)
	}
}
