// Package share divides a link's capacity between slices in a tree: weighted max-min with floors and ceilings, from the root (Chen, section
// 6.2.2), so fast that sixteen thousand slices are divided a hundred times a second.
package share

import "math"

// Node is a slice, or one that holds others. Rates are bytes a second.
type Node struct {
	First, Count int     // children: nodes First to First + Count - 1, after their parent; none: a leaf
	Weight       float64 // above 0, against its siblings
	Floor        float64 // what it gets if it wants it
	Ceiling      float64 // what it never passes; +Inf: no ceiling
}

// Tree divides. Node 0 is the root, whose ceiling is the capacity.
type Tree struct {
	nodes  []Node
	demand []float64
	alloc  []float64
	grant  []float64
	low    []float64 // what of its floor a node wants
	level  []float64 // of each node's children, at the last division: where the search begins
}

// New is a tree of nodes, parents before their children.
func New(nodes []Node) *Tree {
	n := len(nodes)
	return &Tree{nodes, make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
}

// Demand is to be set for leaves before Divide: bytes a second, +Inf for a leaf that takes what it gets.
func (t *Tree) Demand(leaf int, rate float64) { t.demand[leaf] = rate }

// Alloc is what a node uses of the capacity, and gets.
func (t *Tree) Alloc(node int) float64 { return t.alloc[node] }

// Grant is what a node may take at once: its allocation if it is busy, and otherwise about what it would get if it were, so that a slice that
// begins to send need not wait for the next division.
func (t *Tree) Grant(node int) float64 { return t.grant[node] }

// Divide allocates the capacity.
func (t *Tree) Divide() {
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := &t.nodes[i]
		if n.Count > 0 {
			t.demand[i] = 0
			for _, d := range t.demand[n.First : n.First+n.Count] {
				t.demand[i] += d
			}
		}
		if t.demand[i] > n.Ceiling {
			t.demand[i] = n.Ceiling
		}
		if t.low[i] = n.Floor; n.Floor > t.demand[i] {
			t.low[i] = t.demand[i]
		}
	}
	t.alloc[0], t.grant[0] = t.demand[0], t.nodes[0].Ceiling
	for i := range t.nodes {
		if t.nodes[i].Count > 0 {
			t.children(i)
		}
	}
}

func (t *Tree) at(i int, level float64) float64 {
	x := t.nodes[i].Weight * level
	if x >= t.demand[i] {
		return t.demand[i]
	}
	return max(x, t.low[i])
}

// children of a node share what it got. A node that is not busy has a larger grant than its allocation: its children divide that, too.
func (t *Tree) children(i int) {
	n := &t.nodes[i]
	first, last := n.First, n.First+n.Count
	total := 0.
	for c := first; c < last; c++ {
		total += t.demand[c]
	}
	if total <= t.alloc[i] { // all get what they want
		spare := t.grant[i]
		if !math.IsInf(spare, 1) {
			spare = max(0, spare-total)
		}
		weights := 0.
		for c := first; c < last; c++ {
			weights += t.nodes[c].Weight
		}
		for c := first; c < last; c++ {
			own := t.grant[i] / weights * t.nodes[c].Weight // what it gets of busy siblings
			t.alloc[c] = t.demand[c]
			t.grant[c] = min(t.nodes[c].Ceiling, max(t.demand[c]+spare, t.nodes[c].Floor, own))
		}
		return
	}
	level := t.find(i)
	for c := first; c < last; c++ {
		t.alloc[c] = t.at(c, level)
		t.grant[c] = t.alloc[c]
		if t.alloc[c] == t.demand[c] {
			t.grant[c] = min(t.nodes[c].Ceiling, max(t.alloc[c], t.nodes[c].Floor, t.nodes[c].Weight*level))
		}
	}
}

// find returns the level at which children use what a node got. What they use rises with the level in straight lines, so that a line from
// one point meets the next one after a few steps; bisection is there for the case that it does not.
func (t *Tree) find(i int) float64 {
	low, high, level := 0., math.Inf(1), t.level[i]
	for range 200 {
		sum, slope := t.used(i, level)
		over := sum - t.alloc[i]
		if math.Abs(over) <= 1e-9*t.alloc[i] {
			break
		}
		if over > 0 {
			high = level
		} else {
			low = level
		}
		next := level - over/slope
		if slope == 0 || next <= low || next >= high {
			next = (low + high) / 2
			if math.IsInf(high, 1) {
				next = 2*level + t.alloc[i]/float64(t.nodes[i].Count)
			}
		}
		if next == level {
			break
		}
		level = next
	}
	t.level[i] = level
	return level
}

// used is what the children of a node use at a level, and how fast that rises.
func (t *Tree) used(i int, level float64) (sum, slope float64) {
	n := &t.nodes[i]
	first, last := n.First, n.First+n.Count
	nodes, lows, demands := t.nodes[first:last], t.low[first:last], t.demand[first:last]
	for c := range nodes {
		switch x := nodes[c].Weight * level; {
		case x >= demands[c]:
			sum += demands[c]
		case x < lows[c]:
			sum += lows[c]
		default:
			sum += x
			slope += nodes[c].Weight
		}
	}
	return sum, slope
}
