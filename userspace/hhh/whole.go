package hhh

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// portion is what the count of a set of whole keys consists of. Every entry has packets that were counted for its key, and a rest that may be of other keys: the entry has
// taken over the packets of keys that had it before, with such a probability that sums of any keys are unbiased. The sum of the squares of the
// rests estimates the variance of the sum, as Horvitz and Thompson's does for a sample: each takeover adds to it, in
// expectation, what it adds to the variance, if the two keys are not both of the set.
type portion struct{ count, rest, squares float64 }

func (p portion) plus(o portion, sign float64) portion {
	return portion{p.count + sign*o.count, p.rest + sign*o.rest, p.squares + sign*o.squares}
}

// within is the share of the variance in a set with all that is random of the table: only whether a packet without an entry is counted. A counter
// that grows by half is worth half of it: (1/2)^2 of 1/2 + (1/2)^2.
const within = 1. / 3

// variance of the count of a set, of which all is the whole table.
func (p portion) variance(all portion) float64 {
	if all.rest <= 0 {
		return 0
	}
	outside := min(1, max(0, 1-p.rest/all.rest))
	return max(0, p.squares) * (within + (1-within)*outside)
}

func (p portion) deviation(all portion) float64 { return math.Sqrt(p.variance(all)) }

// margin of a count: the rest is a number of entries' weights, nearly a Poisson number, whose root has a deviation of a half. A set that has few
// of them may have lost one as large as the others'.
func (p portion) margin(all portion) margin {
	if all.rest <= 0 {
		return margin{}
	}
	rest, usual := max(0, p.rest), all.squares/all.rest
	m := margin{0, above(rest, usual)}
	if rest > 0 && p.squares > 0 {
		size := p.variance(all) / rest
		m = margin{rest - size*math.Pow(max(0, math.Sqrt(rest/size)-1.96/2), 2), above(rest, size)}
		if rest < usual {
			m.above = max(m.above, above(rest, usual))
		}
	}
	return m
}

// above is how far an interval of a sum of weights of this size reaches upwards.
func above(sum, size float64) float64 {
	return size*math.Pow(math.Sqrt(sum/size+1)+1.96/2, 2) - sum
}

// wholeOf adds up entries of whole addresses to prefixes.
func (c *config) wholeOf(t *heavy.Table) seen {
	s := seen{estimates: map[heavy.Prefix]float64{}, margins: map[heavy.Prefix]margin{}, parts: map[heavy.Prefix]portion{}, records: t.Records, smallest: t.Minimum}
	for key, n := range t.Counts {
		one := portion{count: n, rest: n, squares: n * n}
		if g, noted := t.Guesses[key]; noted {
			one = portion{n, max(0, g.Mean-g.Admissions()), g.Deviation() * g.Deviation()}
		}
		s.all = s.all.plus(one, 1)
		src, dst := c.ways.Spec.Addrs(key)
		c.ancestors(src, dst, func(p heavy.Prefix) { s.parts[p] = s.parts[p].plus(one, 1) })
	}
	for p, parts := range s.parts {
		if c.isExact(p) {
			delete(s.parts, p)
			continue
		}
		s.estimates[p], s.margins[p] = parts.count, parts.margin(s.all)
	}
	return s
}

// rest is the margin of a conditioned count: of the keys that are in none of the heavy prefixes below, or of all of these if the prefix itself is counted exactly.
// These have been listed because they are large, so that what is left is too small as often as they are too large (nearby).
func (s seen) rest(found []heavy.Heavy, p heavy.Prefix) (m margin) {
	minus, plus := heavy.Parts(found, p)
	left, counted := s.parts[p]
	for _, o := range minus {
		left = left.plus(s.parts[o], -1)
		of := s.margins[o]
		of.below *= selectedWhole
		m = m.spread(of.turned())
	}
	for _, o := range plus {
		left = left.plus(s.parts[o], 1)
		m = m.spread(s.margins[o])
	}
	if counted {
		return left.margin(s.all)
	}
	return m
}
