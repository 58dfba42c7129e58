package snapshottest

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Edge is a word of a snapshot, what it may be to both ends, and what it may not be.
type Edge struct {
	Name      string
	At        int
	Good, Bad []uint64
}

// Range is the edge of a word that holds a number with a fraction: both ends are valid, the values next to them are not, and neither is what is not a number.
func Range(name string, at int, low, high float64) Edge {
	return Edge{name, at, Numbers(low, high), Numbers(math.Nextafter(low, math.Inf(-1)), math.Nextafter(high, math.Inf(1)), math.Inf(1), math.Inf(-1), math.NaN())}
}

// Numbers are words.
func Numbers(list ...float64) []uint64 { return snapshot.Floats(list) }

// Edges checks that a snapshot with a word at its edge has a report, and that one beyond it is refused, alone and merged.
func Edges(t *testing.T, s *snapshot.Snapshot, edges ...Edge) {
	t.Helper()
	with := func(e Edge, word uint64) *snapshot.Snapshot {
		d := *s
		d.Words = maps.Clone(s.Words)
		d.Words[e.Name] = slices.Clone(s.Words[e.Name])
		d.Words[e.Name][e.At] = word
		return &d
	}
	for _, e := range edges {
		for _, word := range e.Good {
			if r, err := algo.Report(with(e, word)); err != nil {
				t.Errorf("%s[%d] = %#x: %v", e.Name, e.At, word, err)
			} else {
				Text(t, r)
			}
		}
		for _, word := range e.Bad {
			if _, err := algo.Report(with(e, word)); !errors.Is(err, snapshot.ErrDamaged) {
				t.Errorf("%s[%d] = %#x is taken: %v", e.Name, e.At, word, err)
			}
			if _, err := algo.Merge(s, with(e, word)); err == nil {
				t.Errorf("%s[%d] = %#x is merged", e.Name, e.At, word)
			}
		}
	}
}
