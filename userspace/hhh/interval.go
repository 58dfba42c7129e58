package hhh

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// margin is how far below and above an estimate its 95 % interval reaches.
type margin struct{ below, above float64 }

// spread adds margins of estimates with independent errors.
func (m margin) spread(o margin) margin {
	return margin{math.Hypot(m.below, o.below), math.Hypot(m.above, o.above)}
}

// turned is the margin of a subtracted estimate.
func (m margin) turned() margin { return margin{m.above, m.below} }

// drawn is the margin of a prefix whose packets are counted with probability 1/draws. The count at its level is exact except for the packets
// before it had an entry; the drawing error of a root is nearly normally distributed even if it is small. size is the weight of
// a packet.
func drawn(estimate, counted float64, g heavy.Guess, draws, size float64) margin {
	low, high := g.Interval(counted)
	n, z := counted/size, 1.96/2*math.Sqrt(1-1/draws)
	fewest := size * math.Pow(max(0, math.Sqrt(n)-z), 2)
	most := size * math.Pow(math.Sqrt(n+1)+z, 2)
	below := draws * math.Hypot(counted-low, counted-fewest)
	above := draws * math.Hypot(high-counted, most-counted)
	return margin{max(0, estimate-max(0, draws*counted-below)), max(0, draws*counted+above-estimate)}
}

// Ends of 95 % of all waits for an admission, in units of what each packet adds to its probability.
const longestWait = 3.69

// stacked is the margin of a prefix that every packet counts at. The competing counter grows as the root of time from initial to smallest;
// a prefix of so many packets has waited for its entry until its chances added up to a number with an exponential distribution, and
// its entry started with the value that others competed with then (docs/hhh.md).
func stacked(estimate, initial, smallest float64) margin {
	growth := max(0, smallest*smallest-initial*initial) / max(1, estimate+initial)
	return margin{min(growth/4, smallest-initial, estimate),
		1 + min(longestWait*initial+(longestWait/4-.5)*longestWait*growth, longestWait*smallest)}
}

// conditioned is the margin of a conditioned count: those of all counts in it.
func (s seen) conditioned(found []heavy.Heavy, p heavy.Prefix) margin {
	if s.parts != nil {
		return s.rest(found, p)
	}
	m := s.margins[p]
	minus, plus := heavy.Parts(found, p)
	for _, o := range minus {
		m = m.spread(s.margins[o].turned())
	}
	for _, o := range plus {
		m = m.spread(s.margins[o])
	}
	return m
}

// nearby widens the margin of a prefix that may be below the threshold. It is listed because chance has raised it that far, and of many
// prefixes below a threshold the luckiest are listed: if networks are about equally large, a third of those at the threshold
// are more than two standard deviations below their estimate. The whole interval measures the distance: for an estimate without the initial
// value, which has little range below it, chance matters as much as for one with as much range on both sides.
func (m margin) nearby(conditioned, threshold, widened float64) margin {
	if conditioned-(m.below+m.above)/2 < threshold {
		m.below *= widened
	}
	return m
}

// selected widens 95 % of a normal distribution to 99.7 %. Whole keys have wider intervals, because all of a counter that has been added to is called a guess.
const selected, selectedWhole = 1.5, 1.25

func (c *config) widened() float64 {
	if c.whole {
		return selectedWhole
	}
	return selected
}
