package outlet

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Everything that was published before the end is in the store, in whatever portions it came; readers of health disturb nobody.
func TestKeeper(t *testing.T) {
	set := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	hub, log := &set.hub, set.opts.Log
	c := config.Store{Path: filepath.Join(t.TempDir(), "windows.db"), MaxAge: time.Hour, MaxBytes: 8 << 20}
	s, err := openStore(c, log)
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper(c, s, set)
	const windows = 1000
	var all sync.WaitGroup
	all.Go(func() {
		for range 50 {
			k.health()
		}
	})
	for n := range windows {
		hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "a", Interface: "i", Window: report.Window{Number: n, End: Monotonic()}}})
	}
	all.Wait()
	hub.Close()
	if err := k.close(); err != nil || k.kept != windows || k.failed != 0 {
		t.Errorf("%d kept, %d failed, %v", k.kept, k.failed, err)
	}
}

func TestWhen(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Time{"": {}, "90m": now.Add(-90 * time.Minute), "2026-01-01": now.Truncate(24 * time.Hour).Add(-24 * time.Hour),
		"2026-01-02T03:04:05Z": now} {
		if got, err := When(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := When("yesterday", now); err == nil {
		t.Error("yesterday is no time")
	}
}

// What a configuration names is written to from then on, what it does not name any more is closed, and nothing of that is trouble.
func TestCommit(t *testing.T) {
	dir := t.TempDir()
	var told bytes.Buffer
	s := New(Options{Log: slog.New(slog.NewTextHandler(&told, nil))})
	for n, name := range []string{"first", "second"} {
		o, err := s.Prepare(Config{Outputs: []config.Output{{JSON: filepath.Join(dir, name+".json")}, {JSON: filepath.Join(dir, name+"-too.json")}},
			Store: &config.Store{Path: filepath.Join(dir, name+".db"), MaxAge: time.Hour, MaxBytes: 8 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		s.Commit(o)
		s.Publish(t.Context(), report.Line{Algorithm: "a", Interface: "i", Window: report.Window{Number: n, End: Monotonic()}})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "first-too", "second", "second-too"} {
		if text, err := os.ReadFile(filepath.Join(dir, name+".json")); err != nil || bytes.Count(text, []byte("\n")) != 1 {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
	if told.Len() > 0 {
		t.Errorf("told: %s", &told)
	}
}
