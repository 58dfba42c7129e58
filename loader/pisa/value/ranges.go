package value

import "iter"

// shared is a range of bytes that cuts no cell of two memories; a and b are the indices of the cells that are
// exactly there, -1 where there is none.
type shared struct{ Off, Size, A, B int }

// Ranges are the smallest ranges that cut no cell of either list, in order. Both lists are sorted already.
func Ranges(a, b Memory) iter.Seq[shared] {
	return func(yield func(shared) bool) {
		for i, j := 0, 0; i < len(a) || j < len(b); {
			r, ni, nj := nextRange(a, b, i, j)
			if !yield(r) {
				return
			}
			i, j = ni, nj
		}
	}
}

// nextRange grows a range from the first of the cells that are left until no cell of either list sticks out,
// and returns where both lists continue.
func nextRange(a, b Memory, i, j int) (r shared, ni, nj int) {
	from, to := extent(a, b, i, j)
	ni, nj = i, j
	for grown := true; grown; {
		grown = false
		for ; ni < len(a) && a[ni].Off < to; ni++ {
			to, grown = max(to, a[ni].end()), true
		}
		for ; nj < len(b) && b[nj].Off < to; nj++ {
			to, grown = max(to, b[nj].end()), true
		}
	}
	r = shared{Off: from, Size: to - from, A: -1, B: -1}
	if ni == i+1 && a[i].Off == from && a[i].end() == to {
		r.A = i
	}
	if nj == j+1 && b[j].Off == from && b[j].end() == to {
		r.B = j
	}
	return r, ni, nj
}

func extent(a, b Memory, i, j int) (from, to int) {
	if i == len(a) || j < len(b) && b[j].Off < a[i].Off {
		return b[j].Off, b[j].end()
	}
	return a[i].Off, a[i].end()
}
