package heavy

import (
	"maps"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// The words of a table in a snapshot: one row per key in the keys' order, and the values common to all.
const (
	tableWords = "table"
	stateWords = "state"

	guessWords = 6
	rowWords   = KeyWords + 2 + guessWords // key, count, absent, guess
	stateCount = 7
)

// mostCounted bounds a count: sums of them stay finite.
const mostCounted = 1e18

// Into writes the table into a snapshot.
func (t *Table) Into(s *snapshot.Snapshot) {
	keys := slices.SortedFunc(maps.Keys(t.Counts), Key.Compare)
	rows := make(snapshot.Words, 0, rowWords*len(keys))
	for _, key := range keys {
		g := t.Guesses[key]
		rows = append(rows, key[:]...)
		rows = append(rows, snapshot.Floats([]float64{t.Counts[key], t.Absent[key], g.Mean, g.most, g.variance, float64(g.admissions), g.low, g.high})...)
	}
	s.Words[tableWords] = rows
	s.Words[stateWords] = snapshot.Floats([]float64{float64(t.Records), float64(t.Entries), t.Minimum, t.Unseen, float64(t.Twice), t.Admitted, float64(t.Initial)})
}

// TableOf reads it back.
func TableOf(r *snapshot.Reader) *Table {
	state := r.Floats(stateWords, stateCount)
	for _, x := range state {
		if x < 0 || x > mostCounted {
			r.Refuse("a table's state of %g", x)
			return &Table{}
		}
	}
	t := &Table{Counts: map[Key]float64{}, Guesses: map[Key]Guess{}, Absent: map[Key]float64{}, Records: int(state[0]), Entries: int(state[1]), Minimum: state[2],
		Unseen: state[3], Twice: int(state[4]), Admitted: state[5], Initial: uint64(state[6])}
	for _, row := range r.Rows(tableWords, rowWords) {
		key, f := Key(row[:KeyWords]), snapshot.Words(row[KeyWords:]).Floats()
		for _, x := range f {
			if !(x >= 0 && x <= mostCounted*mostCounted) {
				r.Refuse("an entry with %g", x)
				return t
			}
		}
		if _, twice := t.Counts[key]; twice || f[0] > mostCounted || f[5] > mostCounted {
			r.Refuse("a duplicate entry, or one with %g", f[0])
			return t
		}
		t.Counts[key] = f[0]
		if f[1] > 0 {
			t.Absent[key] = f[1]
		}
		if g := (Guess{Mean: f[2], most: f[3], variance: f[4], admissions: int(f[5]), low: f[6], high: f[7]}); g.admissions > 0 {
			t.Guesses[key] = g
		}
	}
	return t
}

// Plus is the sum of two tables of different hosts. Counts and their bounds add up; a flow without an entry on one of them may have had as
// much as any flow without an entry. parts and others are how many hosts they are of.
func (t *Table) Plus(o *Table, parts, others int) *Table {
	share := float64(parts) / float64(parts+others)
	sum := &Table{Counts: maps.Clone(t.Counts), Guesses: maps.Clone(t.Guesses), Absent: map[Key]float64{}, Records: t.Records + o.Records,
		Entries: t.Entries + o.Entries, Minimum: share*t.Minimum + (1-share)*o.Minimum, Unseen: t.Unseen + o.Unseen, Twice: t.Twice + o.Twice,
		Admitted: max(t.Admitted, o.Admitted), Initial: max(t.Initial, o.Initial)}
	for key := range t.Counts {
		sum.overlooked(key, t.Absent[key])
		if _, both := o.Counts[key]; !both {
			sum.overlooked(key, o.Unseen)
		}
	}
	for key, n := range o.Counts {
		sum.overlooked(key, o.Absent[key])
		if _, both := t.Counts[key]; !both {
			sum.overlooked(key, t.Unseen)
		}
		sum.Counts[key] += n
		if g, noted := o.Guesses[key]; noted {
			sum.Guesses[key] = sum.Guesses[key].plus(g)
		}
	}
	return sum
}

func (t *Table) overlooked(key Key, most float64) {
	if most > 0 {
		t.Absent[key] += most
	}
}
