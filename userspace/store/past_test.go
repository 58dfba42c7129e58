package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// numbers are the records that a query chooses.
func numbers(t *testing.T, each func(func(Record) error) error) (list []int) {
	t.Helper()
	if err := each(func(r Record) error {
		var one struct{ N int }
		list = append(list, one.N)
		if err := json.Unmarshal(r.Line, &one); err != nil {
			return err
		}
		list[len(list)-1] = one.N
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// A store on disk and one in memory give the same answers: in order, from and to a time, the newest first, one for each step, and no more than are asked for. Steps are of Unix time.
func TestAnswersOfThePast(t *testing.T) {
	s, m := open1(t, filepath.Join(t.TempDir(), "db"), Options{MaxAge: time.Hour}), NewMemory(1<<20)
	for n := range 8 {
		r := record(n, []string{"lean", "hhh"}[n%2], "eth0")
		if err := errors.Join(s.Append(r), m.Append(r)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Second))) }
	for name, p := range map[string]Past{"disk": s, "memory": m} {
		for _, c := range []struct {
			q    Query
			want []int
		}{
			{Query{}, []int{0, 1, 2, 3, 4, 5, 6, 7}}, {Query{Algorithm: "hhh"}, []int{1, 3, 5, 7}}, {Query{From: at(3), To: at(6)}, []int{3, 4, 5}}, {Query{From: at(2.5)}, []int{3, 4, 5, 6, 7}}, {Query{To: at(1)}, []int{0}}, {Query{To: at(0)}, nil},
			{Query{From: at(8)}, nil}, {Query{Newest: true}, []int{7, 6, 5, 4, 3, 2, 1, 0}}, {Query{Newest: true, To: at(4), From: at(2)}, []int{3, 2}}, {Query{Newest: true, To: at(99)}, []int{7, 6, 5, 4, 3, 2, 1, 0}}, {Query{Newest: true, To: at(0)}, nil},
			{Query{Newest: true, Limit: 2, Algorithm: "lean"}, []int{6, 4}}, {Query{Limit: 3}, []int{0, 1, 2}}, {Query{Except: "lean", From: at(2)}, []int{3, 5, 7}},
		} {
			if got := numbers(t, func(f func(Record) error) error { return p.Each(c.q, f) }); !slices.Equal(got, c.want) {
				t.Errorf("%s: %+v: %d, want %d", name, c.q, got, c.want)
			}
		}
		for _, c := range []struct {
			q    Query
			step time.Duration
			want []int
		}{{Query{}, 2 * time.Second, []int{0, 1, 3, 5, 7}}, {Query{From: at(2), To: at(6), Newest: true}, 3 * time.Second, []int{2, 4}}, {Query{}, 0, []int{0, 1, 2, 3, 4, 5, 6, 7}}, {Query{Algorithm: "hhh"}, 4 * time.Second, []int{1, 3, 7}}} {
			if got := numbers(t, func(f func(Record) error) error { return p.Sample(c.q, c.step, f) }); !slices.Equal(got, c.want) {
				t.Errorf("%s: %+v each %v: %d, want %d", name, c.q, c.step, got, c.want)
			}
		}
		stop, seen := errors.New("enough"), 0
		if err := p.Each(Query{}, func(Record) error { seen++; return stop }); !errors.Is(err, stop) || seen != 1 {
			t.Errorf("%s: %d records, %v", name, seen, err)
		}
	}
}

// What is kept in memory has a bound in bytes: the oldest are dropped, and one that is too large by itself is not kept.
func TestMemoryIsBounded(t *testing.T) {
	one, err := pack(record(0, "lean", "eth0"))
	if err != nil {
		t.Fatal(err)
	}
	m := NewMemory(3 * (len(one) + recordOverhead))
	all := func() []int {
		return numbers(t, func(f func(Record) error) error { return m.Each(Query{}, f) })
	}
	for n := range 5 {
		if err := m.Append(record(n, "lean", "eth0")); err != nil {
			t.Fatal(err)
		}
	}
	if got := all(); !slices.Equal(got, []int{2, 3, 4}) || m.bytes != m.most {
		t.Errorf("%d, %d of %d bytes", got, m.bytes, m.most)
	}
	large := record(5, "lean", "eth0")
	large.Snapshot = make([]byte, m.most)
	for i := range large.Snapshot {
		large.Snapshot[i] = byte(i * i >> 3)
	}
	if err := m.Append(large); err != nil || len(all()) > 0 && m.bytes > m.most {
		t.Errorf("%d, %d of %d bytes, %v", all(), m.bytes, m.most, err)
	}
}

// State is there after a restart as it was set last; what is too large is refused, and kinds do not touch each other.
func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := open1(t, path, Options{MaxBytes: MinBytes})
	state := func(kind string) map[string]string {
		t.Helper()
		all := map[string]string{}
		if err := s.State(kind, func(name string, value []byte) { all[name] = string(value) }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := state("a"); len(got) != 0 {
		t.Errorf("%v", got)
	}
	set := func(kind string, values map[string]string) error {
		raw := map[string][]byte{}
		for k, v := range values {
			raw[k] = []byte(v)
		}
		return s.SetState(kind, raw)
	}
	if err := errors.Join(set("a", map[string]string{"x": "1", "y": "2"}), set("b", map[string]string{"x": "3"}), set("a", map[string]string{"x": "4", "z": "5"})); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open1(t, path, Options{MaxBytes: MinBytes})
	if a, b := state("a"), state("b"); !maps.Equal(a, map[string]string{"x": "4", "z": "5"}) || !maps.Equal(b, map[string]string{"x": "3"}) {
		t.Errorf("%v, %v", a, b)
	}
	room := s.StateRoom()
	if room != MinBytes/stateShare {
		t.Errorf("room for %d bytes", room)
	}
	if err := s.SetState("b", map[string][]byte{"name": bytes.Repeat([]byte("v"), room-3)}); err == nil || !strings.Contains(err.Error(), "exceed") || len(state("b")["x"]) != 1 {
		t.Errorf("one byte too many: %v", err)
	}
	if err := s.SetState("b", map[string][]byte{"name": bytes.Repeat([]byte("v"), room-4)}); err != nil || len(state("b")["name"]) != room-4 {
		t.Errorf("as much as there is room for: %v", err)
	}
}
