package reorder

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Bounds of shares of all packets, where some were not watched. What the packets that nobody watched were can only be assumed: hard() assumes
// nothing, and its ends are as far apart as the share that was not watched, which is tens of times the share out of order. The others
// assume that those packets are like the watched ones to some factor. There is no confidence interval: which flows are watched depends on what
// was seen (a flow that is out of order gives up its bucket), a packet that comes long after its predecessor finds its record replaced, the first packet of
// a flow can never be out of order, and prefixes differ by orders of magnitude. The factors are round numbers with which the bounds hold in 95 % of
// the runs of every cell that is looked at (docs/eval/reorder.md).
const (
	unlike     = 8 // how many times as often packets that nobody watched may be out of order as those that were
	unlikeRow  = 2 // ... a prefix's packets, in its own share
	uneven     = 4 // how many times the usual share of a prefix's packets may not have been watched
	dispersion = 2 // variance of a count of out-of-order packets over that of independent ones: they come in bursts
)

// hard bounds: the unseen packets may all have been out of order, or none.
func hard(out, seen, unseen uint64) (low, high float64) {
	all := seen + unseen
	return ratio(min(out, all), all), ratio(min(out+unseen, all), all)
}

// score are the ends of a 95 % interval of the expectation of a count with dispersion.
func score(n uint64) (low, high float64) {
	x, d := float64(n), dispersion*report.Normal95*report.Normal95/2
	half := math.Sqrt(2*d*x + d*d)
	return max(0, x+d-half), x + d + half
}

// bounds of the share of all packets. The lower end is hard.
func bounds(out, seen, unseen uint64) (low, high float64) {
	low, high = hard(out, seen, unseen)
	if seen == 0 {
		return low, high
	}
	_, most := score(out)
	return low, min(high, (float64(out)+unlike*most/float64(seen)*float64(unseen))/float64(seen+unseen))
}

// rowBounds of the share of a prefix of whose packets an unknown part was not watched; unwatched is what was not watched over what was, of all packets. Without
// report=all the watched packets are those of flows with reordering, and nothing follows for the others.
func (c *config) rowBounds(out, seen, unseen uint64, unwatched float64) (low, high float64) {
	low, high = hard(out, seen, unseen)
	if !c.all || seen == 0 || unseen == 0 {
		return low, high
	}
	least, most := score(out)
	return max(low, least/float64(seen)/(1+uneven*unwatched)), min(high, unlikeRow*most/float64(seen))
}
