package outlet

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// A finding reaches an Alertmanager and a webhook with the same labels at its begin and its end; a receiver that refuses is complained of once.
func TestAlerts(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]string{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] = append(got[r.URL.Path], string(text))
		if r.URL.Path == "/hook" && len(got["/hook"]) == 1 {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer receiver.Close()
	var log strings.Builder
	s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Stdout: io.Discard})
	next, err := s.Prepare(Config{Alerts: settings.Alerts{Alertmanager: receiver.URL + "/", Webhook: receiver.URL + "/hook"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Commit(next)
	const hour = 3600e9
	f := finding.Finding{ID: "x", State: finding.Begins, Kind: finding.SlowNetwork, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Prefix, Name: "10.2.0.0/16"}, Interface: "eth0",
		Since: 500000 * hour, Next: "look"}
	for _, state := range []finding.State{finding.Begins, finding.Ends} {
		if f.State = state; state == finding.Ends {
			f.Until = 500001 * hour
		}
		said := f.Said()
		s.Hub().Publish(t.Context(), feed.Event{Finding: &said})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got["/hook"]) != 2 || len(got["/api/v2/alerts"]) != 2 {
		t.Fatalf("received %v", got)
	}
	var labels []string
	for i, text := range got["/api/v2/alerts"] {
		var list []alertForm
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		a := list[0]
		if a.StartsAt.UnixNano() != f.Since || (a.EndsAt != nil) != (i == 1) || a.Labels["kind"] != "slow-network" || a.Labels["subject"] != "10.2.0.0/16" || !strings.Contains(a.Annotations["description"], "look") {
			t.Errorf("%+v", a)
		}
		l, _ := json.Marshal(a.Labels)
		labels = append(labels, string(l))
	}
	if labels[0] != labels[1] {
		t.Errorf("labels differ: %v", labels)
	}
	if n := strings.Count(log.String(), "alert not delivered"); n != 1 {
		t.Errorf("%d complaints: %s", n, log.String())
	}
}

// What was found is kept beside windows and told apart from them: history of all algorithms has windows only.
func TestFindingsAreKept(t *testing.T) {
	s := New(Options{Log: slog.New(slog.DiscardHandler), Stdout: io.Discard})
	path := t.TempDir() + "/store"
	next, err := s.Prepare(Config{Store: &settings.Store{Path: path, MaxAge: 1000 * time.Hour, MaxBytes: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	s.Commit(next)
	said := finding.Finding{ID: "x", State: finding.Begins, Kind: finding.Scan, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Host, Name: "10.1.1.1"}, Interface: "eth0", Since: 1}.Said()
	s.Hub().Publish(t.Context(), feed.Event{Finding: &said})
	s.Hub().Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "fridge", Identity: report.Identity{Interfaces: []string{"eth0"}}}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	for algorithm, want := range map[string]string{"": `{"algorithm":"fridge"`, api.FindingRecords: `{"finding":{"id":"x"`} {
		var b strings.Builder
		if _, err := api.Records(kept, store.Query{Algorithm: algorithm}, &b); err != nil || strings.Count(b.String(), "\n") != 1 || !strings.HasPrefix(b.String(), want) {
			t.Errorf("%q: %s, %v", algorithm, b.String(), err)
		}
	}
}
