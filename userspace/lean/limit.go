package lean

// A flow is reported when its sum reaches 2^-share of all flows' sum so far (definition 2 with the l1 norm), so that at no
// time more than 2^share flows are above. Flows come and go, so that over a window it may be some times as many.

// maxCoarser bounds how far the limit may be raised: TABLE lean_coarser holds four bits.
const maxCoarser = 8

// adapt chooses by how many powers of two the next window's limit is coarser than asked for: as many candidates as the
// filter is made for, and no more.
func adapt(coarser, candidates, budget int) int {
	switch {
	case candidates > 2*budget:
		return min(coarser+1, maxCoarser)
	case candidates < budget/2:
		return max(coarser-1, 0)
	}
	return coarser
}
