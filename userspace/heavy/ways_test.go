package heavy

import (
	"math"
	"testing"
)

// One CPU's records: a key in two ways is one flow with both counts, and is told; empty entries are none.
func TestRecordsOfACPU(t *testing.T) {
	for _, subtract := range []bool{false, true} {
		w := Ways{Spec: Spec{Fields: Src, Family: IPv4}, Words: 1, Count: 2, Entries: 8, Subtract: subtract}
		words := map[string][][]uint64{
			"c0": {{5, 0, 7, 0}, {0, 0, 0, 0}}, "k00": {{0x0a000001<<32 | 1, 0, 0x0a000002<<32 | 1, 0}, {0, 0, 0, 0}},
			"c1": {{0, 3, 0, 0}, {0, 0, 0, 0}}, "k10": {{0, 0x0a000001<<32 | 1, 0, 0}, {0, 0, 0, 0}},
		}
		table := &Table{Counts: map[Key]float64{}, Guesses: map[Key]Guess{}, Initial: 10}
		if w.addCPU(table, 0, words) == nil {
			t.Error("a CPU with records has nothing to compete with")
		}
		if w.addCPU(table, 1, words) != nil {
			t.Error("a CPU without records has")
		}
		initial := 10.0
		if subtract {
			initial = 0
		}
		if n := table.Counts[Key{0x0a000001<<32 | 1}]; n != 8+2*initial {
			t.Errorf("subtract %v: %g packets in two entries", subtract, n)
		}
		if table.Twice != 1 || table.Records != 3 || table.Entries != 8 || table.Admitted != 7+initial || len(table.Counts) != 2 {
			t.Errorf("subtract %v: %+v", subtract, table)
		}
	}
}

// A newcomer meets the smallest of one random counter of every way.
func TestRivals(t *testing.T) {
	list := rivalsOf([][]uint64{{1, 5, 5, 9}, {2, 2, 5, 5}}, 10)
	want := map[float64]float64{11: 1. / 4, 12: 3. / 4 / 2, 15: 3. / 4 / 2}
	sum := 0.0
	for _, r := range list {
		if math.Abs(r.weight-want[r.value]) > 1e-12 {
			t.Errorf("%g with weight %g, want %g", r.value, r.weight, want[r.value])
		}
		sum += r.weight
	}
	if math.Abs(sum-1) > 1e-12 || len(list) != len(want) {
		t.Errorf("%v, weights of %g in all", list, sum)
	}
}
