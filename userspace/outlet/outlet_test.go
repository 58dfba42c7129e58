package outlet

import (
	"io"
	"log/slog"
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
