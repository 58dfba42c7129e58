package code

// graph is the control flow inside one function, in instructions. Numbers are those of the program.
type graph struct {
	Start int
	join  []int   // join[i-start]: first instruction on all paths from i to the end; -1: the end itself
	Order []int32 // position in reverse postorder: nodes precede those that are reached through them
	Live  []live  // registers and cells that are still read from i on
}

func newGraph(p *Program, f function) *graph {
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
	g := &graph{Start: f.start}
	g.Order = reversePostorder(next, []int{0})
	g.join = postDominators(next, prev, ends, f.start)
	g.Live = liveness(p, f, next, prev)
	return g
}

// JoinOf is the first instruction on all paths from i to the end of its function; -1 is the end itself.
func (g *graph) JoinOf(i int) int { return g.join[i-g.Start] }

// reversePostorder ranks the nodes that roots reach; the others get the last rank. Jumps are followed before what
// follows in the program, so that the body of a loop is ranked before the instructions after it.
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
