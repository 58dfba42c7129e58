package ahab

import (
	"math"
	"slices"
)

// overestimate is what others put into the three cells of a user who sends nothing, in units: the mean of the smallest of one cell of
// each row, and what one user in a hundred has more of.
func (c *config) overestimate(rows [][]uint64, tick uint32) (mean, high float64) {
	var values [][]float64
	for _, row := range rows {
		v := make([]float64, len(row))
		for i, cell := range row {
			v[i] = c.decayed(cell, tick)
		}
		slices.Sort(v)
		values = append(values, v)
	}
	return smallest(values)
}

// decayed is a cell's value by now.
func (c *config) decayed(cell uint64, tick uint32) float64 {
	ticks := int32(tick - uint32(cell>>32))
	if ticks < 0 {
		ticks = 0
	}
	return float64(uint32(cell)) * math.Exp(-float64(ticks)*math.Pow(2, float64(tickShift(c.tau)))/float64(c.tau))
}

// smallest is the mean, and the 99th percentile, of the least of independent draws from each of some sorted lists.
func smallest(lists [][]float64) (mean, high float64) {
	points := slices.Concat(lists...)
	slices.Sort(points)
	before, found := 0.0, false
	for _, x := range points {
		above := 1.0 // probability of more than what lies before x
		for _, l := range lists {
			n, _ := slices.BinarySearch(l, math.Nextafter(before, math.Inf(1)))
			above *= 1 - float64(n)/float64(len(l))
		}
		mean += above * (x - before)
		if !found && above <= 0.01 {
			high, found = before, true
		}
		before = x
	}
	if !found {
		high = before
	}
	return mean, high
}
