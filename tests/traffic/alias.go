package traffic

import "math/rand/v2"

// alias draws from a discrete distribution in constant time (Walker's method): every column has its own item
// up to a height and another one above.
type alias struct {
	shares []float64 // normalised
	height []float64
	other  []int32
}

func newAlias(weights []float64) *alias {
	n := len(weights)
	a := &alias{shares: make([]float64, n), height: make([]float64, n), other: make([]int32, n)}
	var sum float64
	for _, w := range weights {
		sum += w
	}
	var small, large []int32
	for i, w := range weights {
		a.shares[i] = w / sum
		a.height[i] = a.shares[i] * float64(n)
		if a.height[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	a.fill(small, large)
	return a
}

// fill tops up each small column with a part of a large item.
func (a *alias) fill(small, large []int32) {
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.other[s] = l
		a.height[l] -= 1 - a.height[s]
		if a.height[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		a.height[i] = 1 // the rest is full except for rounding
	}
}

func (a *alias) draw(r *rand.Rand) int {
	i := r.IntN(len(a.height))
	if r.Float64() < a.height[i] {
		return i
	}
	return int(a.other[i])
}
