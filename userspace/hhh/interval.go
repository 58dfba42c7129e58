package hhh

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// margin is how far below and above an estimate its 95 % interval reaches.
type margin struct{ below, above float64 }

// spread adds margins of estimates that err independently.
func (m margin) spread(o margin) margin {
	return margin{math.Hypot(m.below, o.below), math.Hypot(m.above, o.above)}
}

// turned is the margin of a subtracted estimate.
func (m margin) turned() margin { return margin{m.above, m.below} }

// drawn is the margin of a prefix whose packets are counted with probability 1/draws. What was counted at its level is known but for what
// came before it had an entry; of what was drawn, a root is as good as normally distributed even where it is small. size is what
// a packet weighs.
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

// stacked is the margin of a prefix that every packet counts at. What flows compete with grows as the root of time from initial to smallest;
// a prefix of so many packets has waited for its entry until its chances added up to a number with an exponential distribution, and
// what its entry began with is what others competed with then (docs/hhh.md).
func stacked(estimate, initial, smallest float64) margin {
	growth := max(0, smallest*smallest-initial*initial) / max(1, estimate+initial)
	return margin{min(growth/4, smallest-initial, estimate),
		1 + min(longestWait*initial+(longestWait/4-.5)*longestWait*growth, longestWait*smallest)}
}

// conditioned is the margin of a conditioned count: those of all counts in it.
func (s seen) conditioned(found []heavy.Heavy, p heavy.Prefix) margin {
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

// nearby widens the margin of a prefix that may be below the threshold. It is listed because chance has raised it as far, and of many
// prefixes below a threshold the luckiest are listed: where networks are about as large as each other, a third of those at the threshold
// lie more than two standard deviations below what is told of them. How near that is the whole interval says: of an estimate that is without the initial
// value, and so with little room below it, chance has as much to do with it as of one with as much room on both sides.
func (m margin) nearby(conditioned, threshold float64) margin {
	if conditioned-(m.below+m.above)/2 < threshold {
		m.below *= selected
	}
	return m
}

// selected takes 95 % of a normal distribution to 99.7 %.
const selected = 1.5
