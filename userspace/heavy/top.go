package heavy

import (
	"cmp"
	"slices"
)

// Flow is a key with its size, estimated or true.
type Flow struct {
	Key   Key
	Count float64
}

// Top returns the k largest flows, largest first.
func Top(counts map[Key]float64, k int) []Flow {
	flows := make([]Flow, 0, len(counts))
	for key, n := range counts {
		flows = append(flows, Flow{key, n})
	}
	slices.SortFunc(flows, func(a, b Flow) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.Key.Compare(b.Key))
	})
	return flows[:min(k, len(flows))]
}

// Recall is the share of the k largest flows that are among found (equation 3.2): flows as large as the k-th count too.
func Recall(truth map[Key]float64, found []Flow, k int) float64 {
	top := Top(truth, k)
	if len(top) == 0 {
		return 1
	}
	limit, hits := top[len(top)-1].Count, 0
	for _, f := range found[:min(k, len(found))] {
		if truth[f.Key] >= limit {
			hits++
		}
	}
	return float64(hits) / float64(len(top))
}
