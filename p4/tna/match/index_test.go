package match

import (
	"math/rand/v2"
	"testing"
)

// TestIndex: the index finds the row that a look at all of them finds first.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	used, groups := 0, 0
	for range 300 {
		keys := 1 + r.IntN(3)
		var masks [][]uint64
		for range 1 + r.IntN(5) {
			m := make([]uint64, keys)
			for i := range m {
				m[i] = r.Uint64N(16)
			}
			masks = append(masks, m)
		}
		rows := make([][]One, 4+r.IntN(60))
		for n := range rows {
			m := masks[r.IntN(len(masks))]
			rows[n] = make([]One, keys)
			for i := range rows[n] {
				rows[n][i] = One{Value: r.Uint64N(16) & m[i], Mask: m[i]}
			}
		}
		x := NewIndex(len(rows), func(at int) []One { return rows[at] })
		if x.groups == nil {
			continue
		}
		used, groups = used+1, groups+len(x.groups)
		for range 200 {
			vals, undef := make([]uint64, keys), make([]uint64, keys)
			for i := range vals {
				vals[i] = r.Uint64N(16)
			}
			want := -1
			for at, row := range rows {
				if Fits(row, vals, undef) == 1 {
					want = at
					break
				}
			}
			if got := x.First(vals); got != want {
				t.Fatalf("%v: row %v, want %v", vals, got, want)
			}
		}
	}
	if used < 100 || groups < 2*used {
		t.Errorf("%d of 300 tables have an index, of %d groups", used, groups)
	}
}
