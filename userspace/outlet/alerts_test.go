package outlet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
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

// post is what a receiver was sent.
type post struct {
	path, text string
	at         time.Time
}

// hearer is an HTTP server that stores what it was sent, and answers as configured by a test.
type hearer struct {
	*httptest.Server
	mu     sync.Mutex
	posts  []post
	answer func(n int, path string) int // the n-th post of a path, from 0
}

func newHearer(t *testing.T) *hearer {
	h := &hearer{answer: func(int, string) int { return http.StatusOK }}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		status := h.answer(len(h.at(r.URL.Path)), r.URL.Path)
		h.posts = append(h.posts, post{r.URL.Path, string(text), time.Now()})
		w.WriteHeader(status)
	}))
	t.Cleanup(h.Server.Close)
	return h
}

// at are the posts of a path; the lock is held.
func (h *hearer) at(path string) (list []post) {
	for _, p := range h.posts {
		if p.path == path {
			list = append(list, p)
		}
	}
	return list
}

func (h *hearer) get(path string) []post {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at(path)
}

// record is a log that a receiver may still write after Close, which does not wait for one that does not answer.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func alerting(t *testing.T, log io.Writer, a settings.Alerts) *Set {
	t.Helper()
	s := New(Options{Log: slog.New(slog.NewTextHandler(log, nil)), Stdout: io.Discard})
	next, err := s.Prepare(Config{Alerts: a})
	if err != nil {
		t.Fatal(err)
	}
	s.Commit(next)
	return s
}

var since = time.Now().Add(-time.Hour).UnixNano()

func slow(name string) finding.Finding {
	return finding.Finding{ID: name, State: finding.GoesOn, Kind: finding.SlowNetwork, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Prefix, Name: name}, Interface: "eth0",
		Since: since, Seen: since + 1e9, Next: "look"}
}

func within(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// alerts are all that an Alertmanager was sent.
func (h *hearer) alerts(t *testing.T) (list []alertForm) {
	t.Helper()
	for _, p := range h.get("/api/v2/alerts") {
		var one []alertForm
		if err := json.Unmarshal([]byte(p.text), &one); err != nil {
			t.Fatalf("%s: %v", p.text, err)
		}
		list = append(list, one...)
	}
	return list
}

// A finding reaches an Alertmanager and a webhook at its begin and at its end, with the same labels; the end resolves the alert. What a receiver refuses for now is
// sent again, in order and once; what it refuses for good is not. The error is logged once, and without the URL, which may hold a secret.
func TestAlerts(t *testing.T) {
	h := newHearer(t)
	h.answer = func(n int, path string) int {
		if path != "/wrong" && n == 0 {
			return http.StatusServiceUnavailable
		}
		return map[string]int{"/wrong": http.StatusTeapot}[path] + map[string]int{"/hook": 200, "/api/v2/alerts": 200}[path]
	}
	var log, wrongLog bytes.Buffer
	s := alerting(t, &log, settings.Alerts{Alertmanager: h.URL + "/", Webhook: h.URL + "/hook?token=secret"})
	wrong := alerting(t, &wrongLog, settings.Alerts{Webhook: h.URL + "/wrong"})
	for _, open := range [][]finding.Finding{{slow("10.2.0.0/16")}, {}} {
		s.Found(t.Context(), open, time.Now())
		wrong.Found(t.Context(), open, time.Now())
		within(t, "posts", func() bool { return len(h.get("/hook")) > 1 && len(h.get("/api/v2/alerts")) > 1 })
	}
	within(t, "the end", func() bool {
		return len(h.get("/hook")) == 3 && len(h.get("/api/v2/alerts")) == 3 && len(h.get("/wrong")) == 2
	})
	for _, s := range []*Set{s, wrong} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	var states []string
	for _, p := range h.get("/hook") {
		var one struct{ Finding finding.Finding }
		if err := json.Unmarshal([]byte(p.text), &one); err != nil {
			t.Fatal(err)
		}
		states = append(states, string(one.Finding.State))
	}
	if !slices.Equal(states, []string{"begins", "begins", "ends"}) {
		t.Errorf("the webhook was sent %v", states)
	}
	list := h.alerts(t)
	for i, a := range list {
		if a.StartsAt.UnixNano() != since || a.EndsAt.After(time.Now()) != (i < 2) || !maps.Equal(a.Labels, list[0].Labels) || a.Labels["kind"] != "slow-network" || a.Labels["subject"] != "10.2.0.0/16" ||
			a.Labels["alertname"] != "xdpmon_slow-network" || !strings.Contains(a.Annotations["description"], "look") {
			t.Errorf("alert %d: %+v", i, a)
		}
	}
	if len(list) != 3 {
		t.Errorf("%d alerts", len(list))
	}
	for name, text := range map[string]string{"alertmanager ": log.String(), "webhook ": log.String(), "webhook": wrongLog.String()} {
		if n := strings.Count(text, "cannot deliver findings, retrying\" receiver=\""+name); n != 1 || strings.Contains(text, "secret") {
			t.Errorf("%s: %d errors: %s", name, n, text)
		}
	}
}

// A receiver that takes connections and never answers delays neither windows nor the other receiver, and the end by no more than its patience.
func TestAlertsWithoutReader(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	h := newHearer(t)
	var log record
	s := alerting(t, &log, settings.Alerts{Alertmanager: "http://" + deaf.Addr().String(), Webhook: h.URL + "/hook"})
	reader := s.Hub().Subscribe(feed.Options{Name: "test", Depth: 1 << 14})
	const many = 2000
	for n := range many {
		s.Found(t.Context(), []finding.Finding{slow(fmt.Sprintf("10.%d.%d.0/24", n/256, n%256))}, time.Now())
		s.Publish(t.Context(), report.Line{Algorithm: "fridge", Identity: report.Identity{Instance: "eth0"}})
	}
	read := 0
	for read < 3*many-1 {
		if _, missed, err := reader.Next(t.Context()); err != nil || missed > 0 {
			t.Fatalf("%d events, %d missed: %v", read, missed, err)
		}
		read++
	}
	within(t, "the other receiver", func() bool { return len(h.get("/hook")) > 100 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "last findings not delivered") {
		t.Errorf("the loss is not logged: %s", log.String())
	}
}

// Active findings are reported immediately when alerts are configured, and again without a change; an active finding that is not repeated ends after a while.
func TestAlertsRepeat(t *testing.T) {
	h := newHearer(t)
	s := New(Options{Log: slog.New(slog.DiscardHandler), Stdout: io.Discard})
	s.Found(t.Context(), []finding.Finding{slow("10.2.0.0/16")}, time.Now())
	r := s.alertmanager(h.URL)
	r.every = 50 * time.Millisecond
	go r.run()
	within(t, "repetitions", func() bool { return len(h.get("/api/v2/alerts")) > 3 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-r.done
	for _, a := range h.alerts(t) {
		if left := time.Until(a.EndsAt); left < alertLasts-time.Minute || left > alertLasts {
			t.Errorf("it ends in %v", left)
		}
	}
}

// Findings are stored together with windows and separate from them: history of all algorithms has windows only.
func TestFindingsAreStored(t *testing.T) {
	s := New(Options{Log: slog.New(slog.DiscardHandler), Stdout: io.Discard})
	path := t.TempDir() + "/store"
	next, err := s.Prepare(Config{Store: &settings.Store{Path: path, MaxAge: 1000 * time.Hour, MaxBytes: 16 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	s.Commit(next)
	shown := finding.Finding{ID: "x", State: finding.Begins, Kind: finding.Scan, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Host, Name: "10.1.1.1"}, Interface: "eth0", Since: 1}.Output()
	s.Hub().Publish(t.Context(), feed.Event{Finding: &shown})
	s.Hub().Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "fridge", Identity: report.Identity{Interfaces: []string{"eth0"}}}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	stored, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()
	for algorithm, want := range map[string]string{"": `{"algorithm":"fridge"`, api.FindingRecords: `{"finding":{"id":"x"`} {
		var b strings.Builder
		if _, err := api.Records(stored, store.Query{Algorithm: algorithm}, &b); err != nil || strings.Count(b.String(), "\n") != 1 || !strings.HasPrefix(b.String(), want) {
			t.Errorf("%q: %s, %v", algorithm, b.String(), err)
		}
	}
}
