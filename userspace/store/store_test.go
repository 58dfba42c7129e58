package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// child is what the test binary does when it is started as a writer that will be killed.
const child = "XDPMON_STORE_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(child); path != "" {
		writeForever(path)
	}
	os.Exit(m.Run())
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func record(n int, algorithm, iface string) Record {
	return Record{End: start.Add(time.Duration(n) * time.Second), Algorithm: algorithm, Instance: "tenants", Interfaces: []string{iface}, Key: "tenants/" + iface,
		Line: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
}

func open1(t *testing.T, path string, o Options) *Store {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return start }
	}
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func query(t *testing.T, s *Store, q Query) string {
	t.Helper()
	var list []string
	if err := s.Each(q, func(r Record) error {
		list = append(list, fmt.Sprintf("%s/%s%s", r.Algorithm, strings.Join(r.Interfaces, ","), r.Line))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

// Snapshots are stored with the lines of their windows, and returned on request.
func TestSnapshots(t *testing.T) {
	s := open1(t, filepath.Join(t.TempDir(), "windows.db"), Options{})
	for n := range 4 {
		r := record(n, "fridge", "eth0")
		if n%2 == 1 {
			r.Snapshot = bytes.Repeat([]byte{byte(n)}, 1000*n)
		}
		if err := s.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := query(t, s, Query{}), `fridge/eth0{"n":0} fridge/eth0{"n":1} fridge/eth0{"n":2} fridge/eth0{"n":3}`; got != want {
		t.Errorf("windows %s, want %s", got, want)
	}
	if err := s.Each(Query{}, func(r Record) error {
		if r.Snapshot != nil { // memory of the file, which is only valid while it is read
			t.Errorf("%s has a snapshot that was not asked for", r.Line)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	var sizes []int
	err := s.Each(Query{Snapshots: true}, func(r Record) error {
		sizes = append(sizes, len(r.Snapshot))
		if n := len(r.Snapshot) / 1000; string(r.Line) != fmt.Sprintf(`{"n":%d}`, n) || bytes.Count(r.Snapshot, []byte{byte(n)}) != len(r.Snapshot) {
			t.Errorf("%s has another window's snapshot, of %d bytes", r.Line, len(r.Snapshot))
		}
		return nil
	})
	if err != nil || !slices.Equal(sizes, []int{1000, 3000}) {
		t.Errorf("snapshots of %v bytes, %v; want 1000 and 3000", sizes, err)
	}
}

// A record whose lengths exceed its data is an error, not a panic.
func TestRecordsThatAreCut(t *testing.T) {
	r := record(1, "fridge", "eth0")
	r.Snapshot = []byte("snapshot")
	whole, err := pack(r)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if _, err := unpack(key(r.End, 1), whole[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken for a record", n, len(whole))
		}
	}
}

func TestQuery(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "windows.db")
	s := open1(t, path, Options{})
	for n := range 4 {
		if err := s.Append(record(n, "fridge", "eth0"), record(n, "lean", "eth1")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Algorithm: "lean", Limit: 2}, `lean/eth1{"n":0} lean/eth1{"n":1}`},
		{Query{Interface: "eth0", Newest: true, Limit: 2}, `fridge/eth0{"n":3} fridge/eth0{"n":2}`},
		{Query{Interface: "eth0", From: start.Add(time.Second), To: start.Add(3 * time.Second)}, `fridge/eth0{"n":1} fridge/eth0{"n":2}`},
		{Query{Interface: "eth0", From: start.Add(time.Second), To: start.Add(3 * time.Second), Newest: true}, `fridge/eth0{"n":2} fridge/eth0{"n":1}`},
		{Query{Instance: "tenants", Interface: "eth1", Limit: 1}, `lean/eth1{"n":0}`},
		{Query{Interface: "tenants/eth1", Limit: 1}, `lean/eth1{"n":0}`}, // its name before 0.1.0
		{Query{Instance: "eth0"}, ""},
		{Query{Algorithm: "none"}, ""},
		{Query{From: start.Add(time.Hour)}, ""},
		{Query{To: start, Newest: true}, ""},
	} {
		if got := query(t, s, c.q); got != c.want {
			t.Errorf("%+v: %s, want %s", c.q, got, c.want)
		}
	}
	for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if _, err := Open(path, Options{}); !errors.Is(err, ErrBusy) {
		t.Errorf("a second process opens it: %v", err)
	}
}

// Neither age nor size exceeds its bound, and the oldest records are deleted.
func TestBounds(t *testing.T) {
	now := start
	path := filepath.Join(t.TempDir(), "windows.db")
	s := open1(t, path, Options{MaxAge: 10 * time.Second, Now: func() time.Time { return now }})
	for n := range 30 {
		now = start.Add(time.Duration(n) * time.Second)
		if err := s.Append(record(n, "a", "i")); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := s.Stats(); err != nil || st.Records != 11 || st.Dropped != 19 || !st.Oldest.Equal(start.Add(19*time.Second)) {
		t.Errorf("%+v, %v", st, err)
	}
	big := open1(t, filepath.Join(t.TempDir(), "windows.db"), Options{MaxBytes: MinBytes})
	noise := make([]byte, 3000)
	for n := range 100 {
		list := make([]Record, 20)
		for k := range list {
			for i := range noise {
				noise[i] = 'a' + byte(rand.IntN(26))
			}
			list[k] = record(20*n+k, "a", "i")
			list[k].Line, _ = json.Marshal(string(noise))
		}
		if err := big.Append(list...); err != nil {
			t.Fatal(err)
		}
		if st, err := big.Stats(); err != nil || st.Bytes > MinBytes || !st.Newest.Equal(list[19].End) {
			t.Fatalf("after %d: %+v, %v", n, st, err)
		}
	}
	if st, _ := big.Stats(); st.Records < 50 {
		t.Errorf("only %d records fit", st.Records)
	}
}

// No more is dropped than it takes: of large records, one for one.
func TestDropsOneForOne(t *testing.T) {
	s := open1(t, filepath.Join(t.TempDir(), "windows.db"), Options{MaxBytes: MinBytes})
	noise := make([]byte, 90_000)
	before := 0
	for n := range 25 {
		for i := range noise {
			noise[i] = 'a' + byte(rand.IntN(26))
		}
		r := record(n, "a", "i")
		r.Line, _ = json.Marshal(string(noise))
		if err := s.Append(r); err != nil {
			t.Fatal(err)
		}
		st, err := s.Stats()
		if err != nil || st.Records < before {
			t.Fatalf("after record %d there are %d, there were %d; %v", n, st.Records, before, err)
		}
		before = st.Records
	}
	if st, _ := s.Stats(); st.Dropped == 0 || st.Dropped+uint64(before) != 25 {
		t.Errorf("%d records, %d dropped", before, st.Dropped)
	}
}

// Other bounds hold from then on; what makes no sense becomes the default or the least.
func TestLimit(t *testing.T) {
	s := open1(t, filepath.Join(t.TempDir(), "windows.db"), Options{})
	for _, c := range []struct {
		age, wantAge     time.Duration
		bytes, wantBytes int64
	}{{time.Hour, time.Hour, 3 << 20, 3 << 20}, {0, DefaultMaxAge, 0, DefaultBytes}, {time.Minute, time.Minute, 5, MinBytes}} {
		s.Limit(c.age, c.bytes)
		if age, bytes := s.bounds(); age != c.wantAge || bytes != c.wantBytes {
			t.Errorf("limits of %v and %d are %v and %d, want %v and %d", c.age, c.bytes, age, bytes, c.wantAge, c.wantBytes)
		}
	}
}

// A damaged file is put aside, and the next one works.
func TestDamage(t *testing.T) {
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:100] },
		func(b []byte) []byte { return []byte("not a store") },
		func(b []byte) []byte { return b[:4*os.Getpagesize()] },
		func(b []byte) []byte { clear(b[:2*os.Getpagesize()]); return b },
		func(b []byte) []byte { clear(b[2*os.Getpagesize():]); return b },
	} {
		path := filepath.Join(t.TempDir(), "windows.db")
		s := open1(t, path, Options{})
		many := make([]Record, 3000)
		for n := range many {
			many[n] = record(n, "a", "i")
		}
		if err := s.Append(many...); err != nil {
			t.Fatal(err)
		}
		s.Close()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damage(b), 0o600); err != nil {
			t.Fatal(err)
		}
		noticed := ""
		again := open1(t, path, Options{Notice: func(f string, a ...any) { noticed += fmt.Sprintf(f, a...) }})
		if err := again.Append(record(1, "a", "i")); err != nil || !strings.Contains(noticed, "unreadable") {
			t.Errorf("after the damage: %v; logged %q", err, noticed)
		}
		again.Close()
	}
}

func writeForever(path string) {
	s, err := Open(path, Options{MaxAge: 100 * 365 * 24 * time.Hour})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	n := 0
	if err := s.Each(Query{Newest: true, Limit: 1}, func(r Record) error { _, err := fmt.Sscanf(string(r.Line), `{"n":%d}`, &n); return err }); err != nil {
		fmt.Println("error", err)
	}
	for {
		n++
		if err := s.Append(record(n, "a", "i")); err != nil {
			fmt.Println("error", err)
		}
		fmt.Println(n)
	}
}

// A writer that is killed at a random moment leaves a store that opens, with everything that it had reported as stored.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "windows.db")
	last := 0
	for round := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), child+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 3 + rand.IntN(40) {
			if !lines.Scan() {
				t.Fatal("the writer ended")
			}
			if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
				t.Fatalf("round %d: %s", round, lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
				t.Fatal(lines.Text())
			}
		}
		_ = cmd.Wait()
	}
	s := open1(t, path, Options{MaxAge: 100 * 365 * 24 * time.Hour, Notice: t.Errorf})
	n := 0
	if err := s.Each(Query{}, func(r Record) error {
		n++
		if want := fmt.Sprintf(`{"n":%d}`, n); string(r.Line) != want {
			return fmt.Errorf("record %d is %s", n, r.Line)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if n < last || n > last+1 {
		t.Errorf("%d records, the last that was reported is %d", n, last)
	}
}

// Windows that were stored before 0.1.0 have one name for instance and interface, and are found by both.
func TestRecordsWithOneName(t *testing.T) {
	for name, want := range map[string]Record{
		"tenants/vnet0": {Instance: "tenants", Interfaces: []string{"vnet0"}, Key: "tenants/vnet0"},
		"eth0,eth1":     {Instance: "eth0,eth1", Key: "eth0,eth1"},
	} {
		v := append([]byte{oneName, 4}, "lean\x00"...)
		v = append(append(v, byte(len(name))), name...)
		r, rest, err := names(append(v, "line"...))
		if err != nil || r.Algorithm != "lean" || r.Instance != want.Instance || r.Key != want.Key || !slices.Equal(r.Interfaces, want.Interfaces) || string(rest) != "line" {
			t.Errorf("%s: %+v, %q, %v", name, r, rest, err)
		}
		if !(Query{Instance: want.Instance}).chooses(r) || !(Query{Interface: name}).chooses(r) || (Query{Interface: "vnet1"}).chooses(r) {
			t.Errorf("%s is not found, or by another name", name)
		}
	}
	if _, _, err := names([]byte{version, 1, 'a', 0, 1, 'k'}); err == nil {
		t.Error("a record without an instance makes sense")
	}
}
