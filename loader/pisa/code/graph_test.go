package code

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seed = flag.Uint64("pisa.seed", 1, "seed of the random cases")

// TestPostDominators compares with the definition: d is on all paths from i to an end exactly when no end is
// reached from i without d; the wanted node is the first of them.
func TestPostDominators(t *testing.T) {
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 19))
	for range 2000 {
		n := 2 + r.IntN(9)
		next, prev, ends := randomGraph(r, n)
		join := postDominators(next, prev, ends, 0)
		for i := range n {
			if want := joinByDefinition(next, i); join[i] != want {
				t.Fatalf("graph %v: sides of %d meet at %d, want %d", next, i, join[i], want)
			}
		}
	}
}

// randomGraph has nodes with two, one or no successor, as instructions have.
func randomGraph(r *rand.Rand, n int) (next, prev [][]int, ends []int) {
	next, prev = make([][]int, n), make([][]int, n)
	for i := range n {
		for e := r.IntN(3); e > 0; e-- {
			to := r.IntN(n)
			next[i] = append(next[i], to)
			prev[to] = append(prev[to], i)
		}
		if len(next[i]) == 0 {
			ends = append(ends, i)
		}
	}
	return next, prev, ends
}

// reaches reports whether an end can be reached from i without passing a node.
func reaches(next [][]int, i, without int, seen map[int]bool) bool {
	if i == without || seen[i] {
		return false
	}
	if len(next[i]) == 0 {
		return true
	}
	seen[i] = true
	for _, to := range next[i] {
		if reaches(next, to, without, seen) {
			return true
		}
	}
	return false
}

func joinByDefinition(next [][]int, i int) int {
	if !reaches(next, i, -1, make(map[int]bool)) {
		return -1
	}
	var all []int
	for d := range next {
		if d != i && !reaches(next, i, d, make(map[int]bool)) {
			all = append(all, d)
		}
	}
	for _, d := range all {
		first := true
		for _, other := range all {
			first = first && (other == d || !reaches(next, d, other, make(map[int]bool)))
		}
		if first {
			return d
		}
	}
	return -1
}
