package code

// dominators finds for every node of a graph the next node that all paths to the end pass (Cooper, Harvey and
// Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph with one virtual end, node n).
type dominators struct {
	next [][]int
	rank []int32 // in the reversed graph, the end first
	dom  []int   // -1: not found yet
}

// postDominators returns these nodes as numbers of the program; -1 is the end.
func postDominators(next, prev [][]int, ends []int, start int) []int {
	n := len(next)
	d := &dominators{next: next, rank: append(reversePostorder(prev, ends), -1), dom: make([]int, n+1)}
	for i := range d.dom {
		d.dom[i] = -1
	}
	d.dom[n] = n
	order := d.order(n)
	for changed := true; changed; {
		changed = false
		for _, i := range order {
			if best := d.best(i); best >= 0 && d.dom[i] != best {
				d.dom[i] = best
				changed = true
			}
		}
	}
	join := make([]int, n)
	for i := range join {
		join[i] = -1
		if d.dom[i] >= 0 && d.dom[i] != n {
			join[i] = start + d.dom[i]
		}
	}
	return join
}

// order lists the nodes that lead to the end, those at the end first.
func (d *dominators) order(n int) []int {
	byRank := make([]int, n)
	for i := range byRank {
		byRank[i] = -1
	}
	for i, r := range d.rank[:n] {
		if int(r) < n {
			byRank[r] = i
		}
	}
	out := byRank[:0]
	for _, i := range byRank {
		if i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// best is where all known paths from i meet.
func (d *dominators) best(i int) int {
	if len(d.next[i]) == 0 {
		return len(d.next)
	}
	best := -1
	for _, to := range d.next[i] {
		switch {
		case d.dom[to] < 0:
		case best < 0:
			best = to
		default:
			best = d.meet(best, to)
		}
	}
	return best
}

func (d *dominators) meet(a, b int) int {
	for a != b {
		for d.rank[a] > d.rank[b] {
			a = d.dom[a]
		}
		for d.rank[b] > d.rank[a] {
			b = d.dom[b]
		}
	}
	return a
}
