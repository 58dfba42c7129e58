package mutate

import (
	"math/rand/v2"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/lang"
)

func fits(keys [2]uint64, r []lang.Match) bool {
	for i, w := range r {
		if w.Range && (keys[i] < w.Value || keys[i] > w.High) || !w.Range && (keys[i]^w.Value)&w.Mask != 0 {
			return false
		}
	}
	return true
}

// TestRowsThatAreReached: what is said of random rows of a mask and a range is what all their keys say.
func TestRowsThatAreReached(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 16))
	row := func() *lang.Row {
		mask, low := r.Uint64N(8), r.Uint64N(8)
		return &lang.Row{Match: []lang.Match{{Value: r.Uint64() & mask, Mask: mask}, {Value: low, High: low + r.Uint64N(8-low), Range: true}}}
	}
	unreached := 0
	for range 20_000 {
		var rows []*lang.Row
		for range r.IntN(8) {
			rows = append(rows, row())
		}
		a, b := row(), row()
		want := false
		for n := range uint64(64) {
			keys := [2]uint64{n & 7, n >> 3}
			free := fits(keys, a.Match) && fits(keys, b.Match)
			for _, other := range rows {
				free = free && !fits(keys, other.Match)
			}
			want = want || free
		}
		shared, meet := common(a.Match, b.Match)
		if got := meet && reachable(shared, rows); got != want {
			t.Fatalf("rows %v and %v behind %v: a key reaches both: %v, want %v", a.Match, b.Match, rows, got, want)
		}
		if meet && !want {
			unreached++
		}
	}
	if unreached < 100 {
		t.Errorf("%d pairs of rows have their common keys taken by others: the test shows nothing", unreached)
	}
}
