package heavy

import (
	"math"
	"testing"
)

// One CPU's records: a key in two ways is one flow with both counts; empty entries are none.
func TestRecordsOfACPU(t *testing.T) {
	for _, subtract := range []bool{false, true} {
		w := Ways{Spec: Spec{Fields: Src, Family: IPv4}, Words: 1, Count: 2, Entries: 8, Subtract: subtract}
		words := map[string][][]uint64{
			"w0": {{5, 0x0a000001<<32 | 1, 0, 0, 7, 0x0a000002<<32 | 1, 0, 0}, make([]uint64, 8)},
			"w1": {{0, 0, 3, 0x0a000001<<32 | 1, 0, 0, 0, 0}, make([]uint64, 8)},
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

// Two tables of different hosts add up, and of a flow that one of them has no entry for it may have had as much as it takes to have one.
func TestPlus(t *testing.T) {
	a := &Table{Counts: map[Key]float64{{1}: 10, {2}: 5}, Guesses: map[Key]Guess{{1}: admitted(2, 2)}, Absent: map[Key]float64{{2}: 1}, Records: 2, Entries: 8,
		Minimum: 4, Unseen: 3, Twice: 1, Admitted: 10, Initial: 1}
	b := &Table{Counts: map[Key]float64{{1}: 7, {3}: 2}, Guesses: map[Key]Guess{{3}: admitted(1, 1)}, Absent: map[Key]float64{{3}: 2}, Records: 2, Entries: 4,
		Minimum: 1, Unseen: 6, Twice: 2, Admitted: 7, Initial: 9}
	s := a.Plus(b, 1, 3)
	if s.Counts[Key{1}] != 17 || s.Counts[Key{2}] != 5 || s.Counts[Key{3}] != 2 || len(s.Counts) != 3 || len(s.Guesses) != 2 {
		t.Errorf("counts %v", s.Counts)
	}
	if s.Absent[Key{1}] != 0 || s.Absent[Key{2}] != 1+6 || s.Absent[Key{3}] != 2+3 {
		t.Errorf("at most %v in addition", s.Absent)
	}
	if s.Records != 4 || s.Entries != 12 || s.Minimum != 4./4+3./4 || s.Unseen != 9 || s.Twice != 3 || s.Admitted != 10 || s.Initial != 9 {
		t.Errorf("%+v", s)
	}
	if a.Counts[Key{1}] != 10 {
		t.Error("adding changed what was added")
	}
}
