package heavy

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// counted is a table of one CPU's words, as Ways.Read makes it.
func counted(w *Ways, counters ...uint64) *Table {
	var records []uint64
	for n, c := range counters {
		records = append(records, c, uint64(n+1)*min(c, 1)) // without counts there are no flows
	}
	words := map[string][][]uint64{"w0": {records}}
	t := &Table{Counts: map[Key]float64{}, Guesses: map[Key]Guess{}, Initial: 1}
	t.compete(w.addCPU(t, 0, words))
	t.Unseen = 5
	return t
}

func example() *Table {
	w := &Ways{Spec: Spec{Fields: Src, Family: IPv4}, Words: 1, Count: 1, Entries: 5, Noted: true}
	return counted(w, 10|20<<noteAt, 100|48<<noteAt, 0, 7, 3)
}

func through(t *testing.T, table *Table) *Table {
	t.Helper()
	s := snapshot.New(snapshot.Head{}, report.Window{})
	table.Into(s)
	r := s.Read()
	back := TableOf(r)
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return back
}

func TestTableInASnapshot(t *testing.T) {
	table := example()
	if len(table.Counts) != 4 || len(table.Guesses) != 4 || table.Unseen <= 0 {
		t.Fatalf("the example is empty: %+v", table)
	}
	table.Absent = map[Key]float64{{2}: 5}
	if back := through(t, table); !reflect.DeepEqual(table, back) {
		t.Errorf("\n%+v became\n%+v", table, back)
	}
	s := snapshot.New(snapshot.Head{}, report.Window{})
	table.Into(s)
	s.Words[tableWords] = append(s.Words[tableWords], s.Words[tableWords][:rowWords]...)
	r := s.Read()
	if TableOf(r); !errors.Is(r.Err(), snapshot.ErrDamaged) {
		t.Errorf("an entry twice: %v", r.Err())
	}
}

// Counts and bounds add up, whatever the order, and what a host has no entry for may have been there unseen.
func TestTablesAdd(t *testing.T) {
	a, b := example(), example()
	delete(b.Counts, Key{2})
	delete(b.Guesses, Key{2})
	b.Unseen = 3
	sum := through(t, a).Plus(through(t, b), 1, 1)
	if sum.Counts[Key{1}] != 2*a.Counts[Key{1}] || sum.Counts[Key{2}] != a.Counts[Key{2}] || sum.Absent[Key{2}] != 3 || sum.Absent[Key{1}] != 0 {
		t.Errorf("%+v", sum)
	}
	if sum.Unseen != a.Unseen+3 || sum.Records != a.Records+b.Records || sum.Guesses[Key{1}].admissions != 2 {
		t.Errorf("%+v", sum)
	}
	if other := b.Plus(a, 1, 1); !reflect.DeepEqual(sum.Counts, other.Counts) || !reflect.DeepEqual(sum.Absent[Key{2}], other.Absent[Key{2}]) {
		t.Errorf("the other way round: %+v", other)
	}
	three := sum.Plus(b, 2, 1)
	if three.Absent[Key{2}] != 6 || math.Abs(three.Minimum-(sum.Minimum*2+b.Minimum)/3) > 1e-9 {
		t.Errorf("three: %+v", three)
	}
}

// What a table of a snapshot may hold is bounded: counts to a bound, their squares to its square, and nothing below zero.
func TestTableEdges(t *testing.T) {
	s := snapshot.New(snapshot.Head{}, report.Window{})
	example().Into(s)
	refused := func(name string, at int, x float64) bool {
		d := *s
		d.Words = maps.Clone(s.Words)
		d.Words[name] = slices.Clone(s.Words[name])
		d.Words[name][at] = math.Float64bits(x)
		r := d.Read()
		TableOf(r)
		return errors.Is(r.Err(), snapshot.ErrDamaged)
	}
	check := func(name string, at int, most float64) {
		t.Helper()
		for _, x := range []float64{0, 1, most} {
			if refused(name, at, x) {
				t.Errorf("%s[%d] = %g is refused", name, at, x)
			}
		}
		for _, x := range []float64{-math.SmallestNonzeroFloat64, math.Nextafter(most, math.Inf(1)), math.NaN()} {
			if !refused(name, at, x) {
				t.Errorf("%s[%d] = %g is taken", name, at, x)
			}
		}
	}
	for at := range stateCount {
		check(stateWords, at, mostCounted)
	}
	for _, row := range []int{0, rowWords} {
		for at := range 2 + guessWords {
			most := mostCounted * mostCounted
			if at == 0 || at == 5 { // count, admissions
				most = mostCounted
			}
			check(tableWords, row+KeyWords+at, most)
		}
	}
}
