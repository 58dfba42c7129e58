// Package snapshottest contains what every algorithm's snapshots must pass: tests without a kernel call it with their snapshots.
package snapshottest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// New makes a snapshot's head of an algorithm with these parameters and seed 1.
func New(t *testing.T, name string, set map[string]string) (*snapshot.Snapshot, algo.Values) {
	t.Helper()
	return Seeded(t, name, set, algo.Env{Setup: algo.Setup{WindowNS: 1e9}, Seed: 1})
}

// Seeded is New elsewhere.
func Seeded(t *testing.T, name string, set map[string]string, env algo.Env) (*snapshot.Snapshot, algo.Values) {
	t.Helper()
	d, err := algo.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	of, err := d.Select(set, env.Setup)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.New(of.Head(env.Seed), report.Window{Start: 1e9, End: 2e9}), of.Values
}

// Report of a snapshot that must have one.
func Report(t *testing.T, s *snapshot.Snapshot) algo.Result {
	t.Helper()
	r, err := algo.Report(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Merge what must be mergeable.
func Merge(t *testing.T, a, b *snapshot.Snapshot) *snapshot.Snapshot {
	t.Helper()
	s, err := algo.Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Value of a report by its name; NaN when it has none.
func Value(b report.Body, name string) float64 {
	for _, v := range b.Values {
		if v.Name == name {
			f, _ := report.Number(v.Value)
			return f
		}
	}
	return math.NaN()
}

// Text is a report as JSON, to compare it.
func Text(t *testing.T, r algo.Result) string {
	t.Helper()
	b, err := json.Marshal(struct {
		Body     report.Body
		Used     uint64
		Segments bool
		Lost     map[string]uint64
	}{r.Body, r.Used, r.Segments, r.Lost})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Stands checks that the report of a snapshot is a pure function of it, that it survives its encoding, and that no damage that
// the encoding lets through makes more of it than an error or another report.
func Stands(t *testing.T, s *snapshot.Snapshot) {
	t.Helper()
	before, want := encode(t, s), Text(t, Report(t, s))
	if got := Text(t, Report(t, s)); got != want {
		t.Errorf("asked again, the report is another:\n%s\n%s", got, want)
	}
	if !bytes.Equal(encode(t, s), before) {
		t.Error("its report has changed the snapshot")
	}
	back, err := snapshot.Decode(before)
	if err != nil {
		t.Fatal(err)
	}
	if got := Text(t, Report(t, back)); got != want {
		t.Errorf("encoded and read, the report is another:\n%s\n%s", got, want)
	}
	other := *s
	other.Layout++
	if _, err := algo.Report(&other); !errors.Is(err, algo.ErrLayout) {
		t.Errorf("another layout: %v", err)
	}
	other = *s
	other.Params = maps.Clone(s.Params)
	other.Params["nobody knows"] = "1"
	if _, err := algo.Report(&other); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("an unknown parameter: %v", err)
	}
	damage(t, s)
}

func encode(t *testing.T, s *snapshot.Snapshot) []byte {
	t.Helper()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// trials of damage to a snapshot, shared among its arrays.
const trials = 12

func damage(t *testing.T, s *snapshot.Snapshot) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range slices.Sorted(maps.Keys(s.Words)) {
		for range max(2, trials/len(s.Words)) {
			d := *s
			d.Words = maps.Clone(s.Words)
			d.Words[name] = damaged(random, s.Words[name])
			r, err := algo.Report(&d)
			if err != nil && !errors.Is(err, snapshot.ErrDamaged) {
				t.Errorf("damaged %s: %v", name, err)
			}
			if err == nil {
				Text(t, r)
			}
			if m, err := algo.Merge(s, &d); err == nil {
				_, _ = algo.Report(m) // no panic
			}
		}
		d := *s
		d.Words = maps.Clone(s.Words)
		delete(d.Words, name)
		if _, err := algo.Report(&d); err != nil && !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	for name := range s.Texts {
		d := *s
		d.Texts = maps.Clone(s.Texts)
		delete(d.Texts, name)
		if _, err := algo.Report(&d); err != nil && !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// damaged words: longer, shorter, at their ends, or anything.
func damaged(random *rand.Rand, w snapshot.Words) snapshot.Words {
	d := slices.Clone(w)
	switch random.IntN(5) {
	case 0:
		return append(d, random.Uint64())
	case 1:
		return d[:random.IntN(len(d)+1)]
	case 2:
		for i := range d {
			d[i] = math.MaxUint64
		}
	case 3:
		for i := range d {
			d[i] = random.Uint64() >> random.IntN(64)
		}
	default:
		if len(d) > 0 {
			d[random.IntN(len(d))] = random.Uint64() >> random.IntN(64)
		}
	}
	return d
}
