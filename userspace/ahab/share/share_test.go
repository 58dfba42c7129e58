package share

import (
	"math"
	"math/rand/v2"
	"testing"
)

// random is a tree of some depth with floors and ceilings that can be met, leaves' demands among them.
func random(rng *rand.Rand) (nodes []Node, demands []float64) {
	nodes = []Node{{Weight: 1, Ceiling: 1000}}
	for i := 0; i < len(nodes) && len(nodes) < 120; i++ {
		if i > 0 && rng.IntN(3) > 0 {
			continue
		}
		nodes[i].First, nodes[i].Count = len(nodes), 1+rng.IntN(8)
		for range nodes[i].Count {
			child := Node{Weight: math.Exp2(float64(rng.IntN(13) - 6)), Ceiling: math.Inf(1)}
			if rng.IntN(3) == 0 {
				child.Ceiling = math.Exp(rng.Float64() * 8)
			}
			nodes = append(nodes, child)
		}
	}
	for i := range nodes { // floors: from above, so that those of children fit into their parent's
		n := nodes[i]
		left := min(n.Floor, n.Ceiling)
		if i == 0 {
			left = n.Ceiling
		}
		for c := n.First; c < n.First+n.Count; c++ {
			if rng.IntN(3) == 0 {
				nodes[c].Floor = min(nodes[c].Ceiling, left*rng.Float64()*.7)
				left -= nodes[c].Floor
			}
		}
	}
	demands = make([]float64, len(nodes))
	for i := range nodes {
		switch rng.IntN(4) {
		case 0:
			demands[i] = math.Inf(1)
		case 1:
		default:
			demands[i] = math.Exp(rng.Float64() * 8)
		}
	}
	return nodes, demands
}

// wants is the demand of a node, by its definition.
func wants(nodes []Node, demands []float64, i int) float64 {
	n := nodes[i]
	if n.Count == 0 {
		return min(demands[i], n.Ceiling)
	}
	sum := 0.
	for c := n.First; c < n.First+n.Count; c++ {
		sum += wants(nodes, demands, c)
	}
	return min(sum, n.Ceiling)
}

// fill is max-min by filling up: everybody rises at the speed of its weight, from nothing, until it has what it wants or nothing is left;
// who has a floor above that has its floor. It shares nothing with Divide but the definition.
func fill(nodes []Node, demands, alloc []float64, i int, amount float64) {
	alloc[i] = amount
	n := nodes[i]
	if n.Count == 0 {
		return
	}
	shares := func(water float64) (list []float64, sum float64) {
		for c := n.First; c < n.First+n.Count; c++ {
			want := wants(nodes, demands, c)
			x := math.Max(math.Min(want, nodes[c].Floor), math.Min(want, water*nodes[c].Weight))
			list, sum = append(list, x), sum+x
		}
		return list, sum
	}
	low, high := 0., 1e9
	for range 300 {
		middle := (low + high) / 2
		if _, sum := shares(middle); sum > amount {
			high = middle
		} else {
			low = middle
		}
	}
	list, _ := shares(low)
	for k, x := range list {
		fill(nodes, demands, alloc, n.First+k, x)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-5*(1+math.Abs(a)) }

// Any tree is divided by its definition, in any order of demands: the search begins where the last one ended.
func TestAgainstFilling(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		nodes, _ := random(rng)
		tree := New(nodes)
		for range 4 {
			_, fresh := random(rng)
			demands := make([]float64, len(nodes))
			for i := range demands {
				demands[i] = fresh[rng.IntN(len(fresh))]
				tree.Demand(i, demands[i])
			}
			tree.Divide()
			want := make([]float64, len(nodes))
			fill(nodes, demands, want, 0, wants(nodes, demands, 0))
			for i := range nodes {
				if !near(tree.Alloc(i), want[i]) {
					t.Fatalf("node %d of %d: %g, want %g: %+v", i, len(nodes), tree.Alloc(i), want[i], nodes[i])
				}
			}
			checkGrants(t, nodes, tree)
		}
	}
}

// checkGrants: who is busy may take its share and no more; nobody may take less than its share, or more than its ceiling.
func checkGrants(t *testing.T, nodes []Node, tree *Tree) {
	t.Helper()
	for i, n := range nodes {
		grant, alloc := tree.Grant(i), tree.Alloc(i)
		if grant < alloc*(1-1e-9) || grant > n.Ceiling*(1+1e-9) {
			t.Fatalf("node %d: grant %g, share %g, ceiling %g", i, grant, alloc, n.Ceiling)
		}
		if i > 0 && alloc < tree.demand[i]*(1-1e-9) && !near(grant, alloc) {
			t.Fatalf("node %d wants %g, gets %g and may take %g", i, tree.demand[i], alloc, grant)
		}
	}
}

// The figure of section 6.2.1: a link of 600, three slices with 1, 2 and 5 users.
func TestPaper(t *testing.T) {
	inf := math.Inf(1)
	nodes := []Node{{First: 1, Count: 3, Weight: 1, Ceiling: 600}, {Weight: 1, Ceiling: inf}, {Weight: 1, Ceiling: inf}, {Weight: 1, Ceiling: inf}}
	tree := New(nodes)
	for _, c := range []struct{ demands, alloc, grant [3]float64 }{
		{[3]float64{inf, inf, inf}, [3]float64{200, 200, 200}, [3]float64{200, 200, 200}},
		{[3]float64{0, inf, inf}, [3]float64{0, 300, 300}, [3]float64{300, 300, 300}},
		{[3]float64{0, 20, 0}, [3]float64{0, 20, 0}, [3]float64{580, 600, 580}},
		{[3]float64{590, 0, 0}, [3]float64{590, 0, 0}, [3]float64{600, 200, 200}}, // an idle one may take its share at once
	} {
		for i, d := range c.demands {
			tree.Demand(i+1, d)
		}
		tree.Divide()
		for i := range c.alloc {
			if !near(tree.Alloc(i+1), c.alloc[i]) || !near(tree.Grant(i+1), c.grant[i]) {
				t.Errorf("%v: slice %d gets %g and may take %g, want %g and %g", c.demands, i+1, tree.Alloc(i+1), tree.Grant(i+1), c.alloc[i], c.grant[i])
			}
		}
	}
}

// A light slice beside heavy ones, which have floors and want little more: seen from where all of these have what they want the level seems to be below 0, and
// from where they have their floors far above.
func TestSteep(t *testing.T) {
	inf := math.Inf(1)
	nodes := []Node{{First: 1, Count: 4, Weight: 1, Ceiling: 1000}, {Weight: 1, Ceiling: inf}}
	for range 3 {
		nodes = append(nodes, Node{Weight: 100, Floor: 200, Ceiling: 400})
	}
	tree := New(nodes)
	for leaf := range 4 {
		tree.Demand(leaf+1, inf)
	}
	tree.Divide()
	for leaf, want := range []float64{1000. / 301, 100000. / 301, 100000. / 301, 100000. / 301} {
		if got := tree.Alloc(leaf + 1); !near(got, want) {
			t.Errorf("slice %d gets %g, want %g", leaf+1, got, want)
		}
	}
}

// Without a capacity nobody is limited.
func TestUnlimited(t *testing.T) {
	inf := math.Inf(1)
	tree := New([]Node{{First: 1, Count: 2, Weight: 1, Ceiling: inf}, {Weight: 1, Ceiling: inf}, {Weight: 1, Ceiling: 5}})
	tree.Demand(1, inf)
	tree.Demand(2, inf)
	tree.Divide()
	if !math.IsInf(tree.Grant(1), 1) || tree.Grant(2) != 5 {
		t.Errorf("may take %g and %g", tree.Grant(1), tree.Grant(2))
	}
}

// busy is a tree of three levels with n leaves.
func busy(n int) *Tree {
	inf := math.Inf(1)
	groups := int(math.Sqrt(float64(n)))
	nodes := []Node{{First: 1, Count: groups, Weight: 1, Ceiling: 1e9}}
	for g := range groups {
		nodes = append(nodes, Node{First: 1 + groups + g*(n/groups), Count: n / groups, Weight: 1 + float64(g%3), Ceiling: inf})
	}
	for i := range groups * (n / groups) {
		nodes = append(nodes, Node{Weight: 1 + float64(i%4), Floor: float64(i % 2 * 100), Ceiling: inf})
	}
	return New(nodes)
}

// BenchmarkDivide is 16,000 busy slices in three levels, of which a tenth want another rate each time.
func BenchmarkDivide(b *testing.B) {
	tree := busy(16_000)
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		for i := range tree.nodes {
			if tree.nodes[i].Count == 0 {
				d := math.Inf(1)
				if rng.IntN(10) == 0 {
					d = rng.Float64() * 1e5
				}
				tree.Demand(i, d)
			}
		}
		tree.Divide()
	}
}

// An idle slice may take what is left at once, its share of what its parent may take, or its floor, up to its ceiling; one that has what it wants
// may take its share at the level of the busy ones.
func TestGrantsInATree(t *testing.T) {
	inf := math.Inf(1)
	tree := New([]Node{{First: 1, Count: 2, Weight: 1, Ceiling: 100}, {First: 3, Count: 2, Weight: 1, Ceiling: inf}, {Weight: 1, Ceiling: inf}, {Weight: 1, Ceiling: inf}, {Weight: 3, Floor: 30, Ceiling: 50}})
	for _, c := range []struct {
		demands      [3]float64 // of the other slice beside the group, and of the group's two
		alloc, grant [5]float64
	}{
		{[3]float64{40, 0, 0}, [5]float64{40, 0, 40, 0, 0}, [5]float64{100, 60, 100, 60, 50}},
		{[3]float64{40, 55, 0}, [5]float64{95, 55, 40, 55, 0}, [5]float64{100, 60, 50, 60, 45}},
		{[3]float64{40, 60, 0}, [5]float64{100, 60, 40, 60, 0}, [5]float64{100, 60, 50, 60, 45}},
		{[3]float64{inf, inf, inf}, [5]float64{100, 50, 50, 12.5, 37.5}, [5]float64{100, 50, 50, 12.5, 37.5}},
		{[3]float64{inf, inf, 10}, [5]float64{100, 50, 50, 40, 10}, [5]float64{100, 50, 50, 40, 50}},
		{[3]float64{0, inf, 0}, [5]float64{100, 100, 0, 100, 0}, [5]float64{100, 100, 100, 100, 50}},
		{[3]float64{inf, 0, 20}, [5]float64{100, 20, 80, 0, 20}, [5]float64{100, 80, 80, 60, 50}},
	} {
		for i, d := range c.demands {
			tree.Demand(i+2, d)
		}
		tree.Divide()
		for i := range c.alloc {
			if !near(tree.Alloc(i), c.alloc[i]) || !near(tree.Grant(i), c.grant[i]) {
				t.Errorf("%v: node %d gets %g and may take %g, want %g and %g", c.demands, i, tree.Alloc(i), tree.Grant(i), c.alloc[i], c.grant[i])
			}
		}
	}
}
