package outlet

import (
	"bytes"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/xdpmon/xdpmon/userspace/fridge" // whose rules make measures of windows
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// keeping is a Set with a store.
func keeping(t *testing.T, path string, log io.Writer) *Set {
	t.Helper()
	s := New(Options{Log: slog.New(slog.NewTextHandler(log, nil)), Stdout: io.Discard, Clock: func() report.Clock { return report.Clock{Name: "unix"} }})
	next, err := s.Prepare(Config{Store: &settings.Store{Path: path, MaxAge: time.Hour, MaxBytes: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	s.Commit(next)
	return s
}

// windows publishes windows of these lengths, one after the other.
func windows(t *testing.T, s *Set, from time.Time, lengths ...time.Duration) {
	t.Helper()
	for _, d := range lengths {
		l := report.Line{Algorithm: "fridge", Identity: report.Identity{Instance: "edge", Interfaces: []string{"eth0"}}, Window: report.Window{Start: from.UnixNano(), End: from.Add(d).UnixNano()}}
		l.Packets.Seen = 1000
		s.Publish(t.Context(), l)
		from = from.Add(d)
	}
}

func usual(n int) []time.Duration {
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = 10 * time.Second
	}
	return list
}

// Whoever starts again knows what was usual: windows that take longer begin a finding. Without the store's memory, or where it is damaged or of another
// version, that is learned again, the log names the store and the remedy, and windows are stored as before.
func TestPastsSurvive(t *testing.T) {
	const l = 14900 * time.Millisecond // still compared with windows of 10 s, and 4.9 scatters longer: five of them are an alarm, and too few to learn from
	late := []time.Duration{l, l, l, l, l}
	for name, c := range map[string]struct {
		spoil func(values map[string][]byte)
		found int
		log   string
	}{
		"as it was": {nil, 1, `msg="baselines read"`},
		"damaged":   {func(v map[string][]byte) { each(v, func(b []byte) { b[len(b)/2] ^= 1 }) }, 0, "some baselines unreadable, learning them again"},
		"another's": {func(v map[string][]byte) { each(v, func(b []byte) { b[0] = 99 }) }, 0, "version 99, this one reads 1"},
		"nothing":   {func(v map[string][]byte) { clear(v) }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path, start := filepath.Join(t.TempDir(), "store"), time.Now().Add(-20*time.Minute)
			s := keeping(t, path, io.Discard)
			windows(t, s, start, usual(60)...)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if c.spoil != nil {
				spoil(t, path, c.spoil)
			}
			var log bytes.Buffer
			s = keeping(t, path, &log)
			windows(t, s, start.Add(10*time.Minute), late...)
			if got := len(s.engine.Open()); got != c.found {
				t.Errorf("%d findings, want %d: %v", got, c.found, s.engine.Open())
			}
			windows(t, s, start.Add(11*time.Minute), usual(20)...)
			if err := s.Close(); err != nil || !strings.Contains(log.String(), c.log) || strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("%v: %s", err, log.String())
			}
			stored, err := store.Open(path, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer stored.Close()
			if n, err := stored.Stats(); err != nil || n.Records < 80 {
				t.Errorf("%d windows are stored: %v", n.Records, err)
			}
			if err := stored.State(pasts, func(_ string, b []byte) {
				if b[0] == 99 {
					t.Error("what was refused is still there")
				}
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

func each(values map[string][]byte, change func([]byte)) {
	for _, b := range values {
		change(b)
	}
}

func spoil(t *testing.T, path string, change func(map[string][]byte)) {
	t.Helper()
	stored, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]byte{}
	if err := stored.State(pasts, func(name string, b []byte) { values[name] = b }); err != nil || len(values) == 0 {
		t.Fatalf("%d pasts: %v", len(values), err)
	}
	change(values)
	if err := stored.SetState(pasts, values); err != nil {
		t.Fatal(err)
	}
	if err := stored.Close(); err != nil {
		t.Fatal(err)
	}
}
