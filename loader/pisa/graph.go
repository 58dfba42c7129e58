package pisa

// graph is the control flow inside one function, in instructions. Numbers are those of the program.
type graph struct {
	start int
	join  []int   // join[i-start]: first instruction on all ways from i to the end; -1: the end itself
	order []int32 // position in reverse postorder: what all ways from the start reach first comes first
	live  []live  // what is still read behind the arrival at i
}

func newGraph(p *program, f function) *graph {
	n := f.end - f.start
	next, prev := make([][]int, n), make([][]int, n)
	var ends []int
	for i := range n {
		following, _ := p.successors(f.start + i)
		for _, to := range following {
			next[i] = append(next[i], to-f.start)
			prev[to-f.start] = append(prev[to-f.start], i)
		}
		if len(following) == 0 {
			ends = append(ends, i)
		}
	}
	g := &graph{start: f.start}
	g.order = reversePostorder(next, []int{0})
	g.join = postDominators(next, prev, ends, f.start)
	g.live = liveness(p, f, next, prev)
	return g
}

func (g *graph) joinOf(i int) int { return g.join[i-g.start] }

// reversePostorder ranks the nodes that roots reach; the others get the last rank. Jumps are followed before what
// comes next in the program, so that the body of a loop is ranked before what lies behind it.
func reversePostorder(next [][]int, roots []int) []int32 {
	rank := make([]int32, len(next))
	for i := range rank {
		rank[i] = int32(len(next))
	}
	seen := make([]bool, len(next))
	type visit struct{ node, edge int }
	var stack []visit
	count := int32(len(next))
	for _, root := range roots {
		if seen[root] {
			continue
		}
		seen[root] = true
		stack = append(stack, visit{root, 0})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			edges := next[top.node]
			if top.edge == len(edges) {
				count--
				rank[top.node] = count
				stack = stack[:len(stack)-1]
				continue
			}
			to := edges[len(edges)-1-top.edge]
			top.edge++
			if !seen[to] {
				seen[to] = true
				stack = append(stack, visit{to, 0})
			}
		}
	}
	return rank
}

// postDominators finds for every node the next node that all ways to the end pass (Cooper, Harvey and Kennedy,
// "A Simple, Fast Dominance Algorithm", on the reversed graph with one virtual end).
func postDominators(next, prev [][]int, ends []int, start int) []int {
	n := len(next)
	end := n
	rank := reversePostorder(prev, ends)
	byRank := make([]int, n+1)
	for i := range byRank {
		byRank[i] = -1
	}
	for i, r := range rank {
		byRank[r] = i
	}
	dom := make([]int, n+1)
	for i := range dom {
		dom[i] = -1
	}
	dom[end] = end
	rankOf := func(i int) int32 {
		if i == end {
			return -1
		}
		return rank[i]
	}
	meet := func(a, b int) int {
		for a != b {
			for rankOf(a) > rankOf(b) {
				a = dom[a]
			}
			for rankOf(b) > rankOf(a) {
				b = dom[b]
			}
		}
		return a
	}
	for changed := true; changed; {
		changed = false
		for _, i := range byRank[:n] {
			if i < 0 {
				continue
			}
			best := -1
			if len(next[i]) == 0 {
				best = end
			}
			for _, to := range next[i] {
				switch {
				case dom[to] < 0:
				case best < 0:
					best = to
				default:
					best = meet(best, to)
				}
			}
			if best >= 0 && dom[i] != best {
				dom[i] = best
				changed = true
			}
		}
	}
	join := make([]int, n)
	for i := range join {
		join[i] = -1
		if dom[i] >= 0 && dom[i] != end {
			join[i] = start + dom[i]
		}
	}
	return join
}
