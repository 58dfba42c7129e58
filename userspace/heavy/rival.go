package heavy

import "slices"

// rival is a counter that a packet without an entry may find as the smallest of d, and how often: the weights of a CPU add up to 1.
type rival struct{ value, weight float64 }

// rivalsOf are the minima of one random counter of every way: each value has as its weight the share of others that are not below it. They
// are sorted. floor is added to all.
func rivalsOf(counters [][]uint64, floor float64) (list []rival) {
	survivors := func(v uint64) float64 { // share of ways' draws that are all above v
		p := 1.0
		for _, c := range counters {
			i, _ := slices.BinarySearch(c, v+1)
			p *= 1 - float64(i)/float64(len(c))
		}
		return p
	}
	var all []uint64
	for _, c := range counters {
		slices.Sort(c)
		all = append(all, c...)
	}
	slices.Sort(all)
	above := 1.0
	for _, v := range slices.Compact(all) {
		rest := survivors(v)
		if rest < above {
			list = append(list, rival{float64(v) + floor, above - rest})
		}
		above = rest
	}
	return list
}

// compete computes the counters that a flow without an entry competes with.
func (t *Table) compete(rivals []rival) {
	sum := 0.0
	for _, r := range rivals {
		t.Minimum += r.value * r.weight
		sum += r.weight
	}
	if sum == 0 {
		return
	}
	t.Minimum /= sum
}
