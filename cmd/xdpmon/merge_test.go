package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// alone reports the number of a snapshot, and cannot merge two; summed can.
type (
	alone  struct{ fakeConfig }
	summed struct{ alone }
)

func (alone) Report(s *snapshot.Snapshot) (algo.Result, error) {
	r := s.Read()
	n := r.Words("n", 1)
	body := report.Body{Values: []report.Value{{Name: "things", Value: n[0], Unit: report.Count}}}
	return algo.Result{Body: body, Used: n[0], Lost: map[string]uint64{}}, r.Err()
}

func (summed) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	if err := algo.SameHashes(a, b); err != nil {
		return nil, err
	}
	s := snapshot.Together(a, b)
	s.Words["n"] = snapshot.Sum(a.Words["n"], b.Words["n"])
	return s, nil
}

func init() {
	empty := func() (*ebpf.CollectionSpec, error) { return &ebpf.CollectionSpec{}, nil }
	algo.Register(&algo.Descriptor{Name: "test-sums", Summary: "sums of the test", Layout: 1, Spec: empty,
		Config: algo.Typed(func(algo.Values, algo.Setup) (summed, error) { return summed{}, nil })})
	algo.Register(&algo.Descriptor{Name: "test-alone", Summary: "cannot be merged", Layout: 1, Spec: empty,
		Config: algo.Typed(func(algo.Values, algo.Setup) (alone, error) { return alone{}, nil })})
}

// writtenSnapshot writes a snapshot with a number of an algorithm of the test.
func writtenSnapshot(t *testing.T, dir, algorithm string, n, seed uint64) string {
	t.Helper()
	s, _ := snapshottest.Seeded(t, algorithm, nil, algo.Env{Seed: seed})
	s.Words["n"], s.Offset = snapshot.Words{n}, 1_700_000_000e9
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%d-%d", algorithm, n, seed))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMergeSnapshots(t *testing.T) {
	dir := t.TempDir()
	a, b, c := writtenSnapshot(t, dir, "test-sums", 3, 1), writtenSnapshot(t, dir, "test-sums", 4, 1), writtenSnapshot(t, dir, "test-sums", 5, 1)
	w, out := newWorld(), filepath.Join(dir, "both")
	if code := w.run("merge", a, b, "--write", out); code != 0 {
		t.Fatalf("code %d: %s", code, &w.err)
	}
	contains(t, w.out.String(), "test-sums: 2 windows from 2023-11-14T22:13:21.000Z", "things: 7")
	w = newWorld()
	if code := w.run("merge", out, c, "--output", "json"); code != 0 {
		t.Fatalf("code %d: %s", code, &w.err)
	}
	line := lines(t, w.out.String())[0]
	if line["algorithm"] != "test-sums" || line["report"].(map[string]any)["things"] != 12.0 {
		t.Errorf("%v", line)
	}
}

func TestMergeRefusesSnapshots(t *testing.T) {
	dir := t.TempDir()
	a, seeded := writtenSnapshot(t, dir, "test-sums", 3, 1), writtenSnapshot(t, dir, "test-sums", 3, 2)
	alone, other := writtenSnapshot(t, dir, "test-alone", 1, 1), writtenSnapshot(t, dir, "test-alone", 2, 1)
	cut := filepath.Join(dir, "cut")
	data, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, data[:len(data)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	for message, files := range map[string][]string{"count twice": {a, a}, "--seed": {a, seeded}, "truncated": {a, cut}, "the algorithm does not support it": {alone, other},
		"one algorithm": {a, alone, "--write", filepath.Join(dir, "out")}} {
		w := newWorld()
		if code := w.run(append([]string{"merge"}, files...)...); code == 0 || !strings.Contains(w.err.String(), message) {
			t.Errorf("%v: code %d, %q; want %q", files, code, &w.err, message)
		}
	}
}

// A limit that is none, or too small, is a mistake in the call.
func TestSnapshotsLimit(t *testing.T) {
	dir := t.TempDir()
	for _, line := range [][]string{{"--snapshots-limit", "1"}, {"--snapshots-limit", "much"}} {
		w := newWorld()
		if code := w.run(append([]string{"replay", "x", "-a", "test-flows", "--snapshots", dir}, line...)...); code != 2 {
			t.Errorf("%v: code %d, %s", line, code, &w.err)
		}
	}
}
