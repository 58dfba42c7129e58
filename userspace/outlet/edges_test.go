package outlet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// quiet is a Set without outputs, and what it logs.
func quiet() (*Set, *bytes.Buffer) {
	var log bytes.Buffer
	return New(Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Stdout: io.Discard, Handler: http.NotFoundHandler}), &log
}

func commit(t *testing.T, s *Set, c Config) {
	t.Helper()
	next, err := s.Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Commit(next)
}

// A status of 2xx ends an attempt, a client's error too, since repeating would not help; what may pass by itself is repeated.
func TestPost(t *testing.T) {
	status := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer h.Close()
	r := &receiver{url: h.URL}
	for code, want := range map[int]struct{ again, failed bool }{200: {}, 204: {}, 299: {}, 301: {true, true}, 400: {false, true}, 404: {false, true}, 499: {false, true}, 408: {true, true}, 429: {true, true}, 500: {true, true}, 503: {true, true}} {
		status = code
		if again, err := r.post("x"); again != want.again || (err != nil) != want.failed {
			t.Errorf("%d: again %v, %v", code, again, err)
		}
	}
	if again, err := r.post(make(chan int)); again || err == nil {
		t.Errorf("what cannot be encoded: again %v, %v", again, err)
	}
	h.Close()
	again, err := r.post("x")
	if of := (*url.Error)(nil); !again || err == nil || errors.As(err, &of) {
		t.Errorf("nobody listens: again %v, %v", again, err)
	}
}

// Attempts that fail are a second apart, then twice as long, up to half a minute; after success there is none for what was delivered, and a repetition for
// active alerts.
func TestAttempts(t *testing.T) {
	status, posts := http.StatusInternalServerError, 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { posts++; w.WriteHeader(status) }))
	defer h.Close()
	waiting := 3
	var log bytes.Buffer
	r := &receiver{name: "webhook", url: h.URL, log: slog.New(slog.NewTextHandler(&log, nil)), message: func(time.Time) any {
		if waiting == 0 {
			return nil
		}
		return waiting
	}, delivered: func() { waiting-- }}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		before := time.Now()
		if next := r.attempt(before); r.pause != want*time.Second || next.Before(before.Add(r.pause)) || waiting != 3 {
			t.Errorf("next attempt in %v, want %d s; %d are waiting", r.pause, want, waiting)
		}
	}
	status = http.StatusOK
	if next := r.attempt(time.Now()); !next.IsZero() || r.pause != 0 || waiting != 0 || posts != 10 {
		t.Errorf("next attempt at %v, pause %v, %d are waiting, %d posts", next, r.pause, waiting, posts)
	}
	if n, m := strings.Count(log.String(), "cannot deliver findings"), strings.Count(log.String(), "delivered again"); n != 1 || m != 1 {
		t.Errorf("logged: %s", &log)
	}
	waiting, r.every = 2, time.Minute
	before := time.Now()
	if next := r.attempt(before); waiting != 1 || next.Before(before.Add(time.Minute)) || next.After(time.Now().Add(time.Minute)) {
		t.Errorf("a repetition at %v, %d are waiting", next, waiting)
	}
}

// More findings than a receiver's queue holds push out the oldest, with a log line; of those that ended an alert manager gets the latest.
func TestQueuesAreBounded(t *testing.T) {
	s, log := quiet()
	hook, manager := s.webhook("http://host.example/path?secret"), s.alertmanager("http://host.example/")
	if hook.name != "webhook host.example" || manager.url != "http://host.example/api/v2/alerts" || hook.message(time.Now()) != nil || manager.message(time.Now()) != nil {
		t.Errorf("%q, %q", hook.name, manager.url)
	}
	for n := range mostWaiting + 2 {
		f := slow(fmt.Sprint(n))
		f.State, f.Until = finding.Ends, int64(n)
		hook.add(f)
		manager.add(f)
		f.State = finding.Begins
		manager.add(f) // the active ones are asked for
	}
	if first := hook.message(time.Now()).(map[string]any)["finding"].(finding.Finding); first.ID != "2" || strings.Count(log.String(), "oldest dropped") != 2 {
		t.Errorf("%s is first, logged: %s", first.ID, log)
	}
	hook.delivered()
	if first := hook.message(time.Now()).(map[string]any)["finding"].(finding.Finding); first.ID != "3" {
		t.Errorf("%s is second", first.ID)
	}
	list := manager.message(time.Now()).([]alertForm)
	if len(list) != mostWaiting || list[0].EndsAt.UnixNano() != 2 || list[0].Labels["subject"] != "2" {
		t.Errorf("%d alerts, the first %+v", len(list), list[0])
	}
	if manager.delivered(); manager.message(time.Now()) != nil {
		t.Error("they are sent again")
	}
}

// What a refused configuration has opened is closed: its store can be opened, its address taken, and its socket is not there.
func TestRefusedConfigurationIsClosed(t *testing.T) {
	dir := t.TempDir()
	s, _ := quiet()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	whole := Config{Outputs: []settings.Output{{JSON: filepath.Join(dir, "deep/er/out")}}, Store: &settings.Store{Path: filepath.Join(dir, "db"), MaxAge: time.Hour, MaxBytes: 8 << 20}, Listen: address, Socket: filepath.Join(dir, "run/socket")}
	for what, change := range map[string]func(*Config){
		"no folder": func(c *Config) {
			c.Outputs = append(slices.Clone(c.Outputs), settings.Output{JSON: filepath.Join(file, "out")})
		},
		"no file":         func(c *Config) { c.Outputs = append(slices.Clone(c.Outputs), settings.Output{JSON: dir}) },
		"no store":        func(c *Config) { c.Store = &settings.Store{Path: filepath.Join(file, "db")} },
		"no address":      func(c *Config) { c.Listen = "nowhere" },
		"no token":        func(c *Config) { c.Web.TokenFile = file + "-none" },
		"no certificates": func(c *Config) { c.Web.Certificates = true },
	} {
		c := whole
		change(&c)
		if o, err := s.Prepare(c); err == nil || o != nil {
			t.Errorf("%s: %+v", what, o)
		}
		o, err := s.Prepare(whole)
		if err != nil {
			t.Fatalf("after %s: %v", what, err)
		}
		if err := o.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(whole.Socket); !os.IsNotExist(err) {
			t.Errorf("%s: the socket is there: %v", what, err)
		}
	}
	for path, mode := range map[string]os.FileMode{"deep/er": os.ModeDir | 0o700, "deep/er/out": 0o600, "run": os.ModeDir | 0o700} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
}

// A socket that was left over is replaced, one that is answered is not, and nobody else may open it.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	first, err := listenSocket(path, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := listenSocket(path, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Errorf("a second one: %v", err)
	}
	if err := first.close(); err != nil {
		t.Error(err)
	}
	again, err := listenSocket(path, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.close(), (*socket)(nil).close()); err != nil {
		t.Error(err)
	}
}

// A store that stays takes new limits, and with them whether snapshots are stored; one that is not configured any more is closed, as is a listener.
func TestStoreIsReconfigured(t *testing.T) {
	dir := t.TempDir()
	s, _ := quiet()
	c := settings.Store{Path: filepath.Join(dir, "db"), MaxAge: time.Hour, MaxBytes: 8 << 20}
	commit(t, s, Config{Store: &c, Listen: "127.0.0.1:0"})
	address := s.servers.http.Address()
	k := s.keeper
	line := report.Line{Algorithm: "a", Identity: report.Identity{Instance: "i"}, Window: report.Window{End: hostclock.Now()}, Snapshot: []byte("s")}
	for _, whole := range []bool{false, true, false} {
		c.Snapshots = whole
		if commit(t, s, Config{Store: &c, Listen: "127.0.0.1:0"}); s.keeper != k || k.whole.Load() != whole {
			t.Errorf("snapshots are stored: %v, want %v", k.whole.Load(), whole)
		}
		if r := k.add(nil, feed.Event{Line: &line}); len(r) != 1 || (r[0].Snapshot != nil) != whole || time.Since(r[0].End).Abs() > time.Minute || r[0].Key != "i" {
			t.Errorf("%+v", r)
		}
	}
	if s.past() == nil {
		t.Error("no store")
	}
	if commit(t, s, Config{}); s.past() != nil || len(s.hub.Readers()) != 0 {
		t.Errorf("a store is there without one in the configuration: %v", s.hub.Readers())
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("the listener is still there")
	}
	stored, err := store.Open(c.Path, store.Options{})
	if err != nil {
		t.Fatalf("the store is still open: %v", err)
	}
	if err := errors.Join(stored.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// Windows that are not stored are counted, and the reason is logged once and reported until windows are stored again.
func TestWindowsThatAreNotStored(t *testing.T) {
	s, log := quiet()
	c := settings.Store{Path: filepath.Join(t.TempDir(), "db"), MaxAge: time.Hour, MaxBytes: 8 << 20}
	opened, err := openStore(c, s.opts.Log)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{cfg: c, store: opened, log: s.opts.Log, clock: s.opts.Clock}
	good := store.Record{End: time.Now(), Algorithm: "a", Instance: "i", Line: []byte("{}")}
	if h := k.health(); h.Age != 0 || h.Kept != 0 {
		t.Errorf("%+v", h)
	}
	k.append(nil)
	k.append([]store.Record{good, good})
	k.last = k.last.Add(-time.Hour)
	k.lose(0)
	if h := k.health(); h.Kept != 2 || h.Failed != 0 || h.Error != "" || h.Age < 3600 || h.Age > 3700 || h.Path != c.Path {
		t.Errorf("%+v", h)
	}
	if k.lose(5); !strings.Contains(log.String(), "windows_lost=5") {
		t.Errorf("logged: %s", log)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		k.append([]store.Record{good})
	}
	if h := k.health(); h.Kept != 2 || h.Failed != 7 || h.Error == "" || strings.Count(log.String(), "store windows failed") != 1 {
		t.Errorf("%+v, logged: %s", h, log)
	}
	if k.add(nil, feed.Event{}) != nil || k.add(nil, feed.Event{Run: &report.Run{}}) != nil {
		t.Error("a record of nothing")
	}
}

// What was not open before begins, what is not open any more ends when it was last seen; nothing else is published.
func TestFound(t *testing.T) {
	s, _ := quiet()
	sub := s.hub.Subscribe(feed.Options{Depth: 9})
	now := time.Unix(0, since+5e9)
	next := func() string {
		var list []string
		for {
			e, _, err := sub.Next(expired(t))
			if err != nil {
				return strings.Join(list, " ")
			}
			f := e.Finding.Object.(finding.Finding)
			list = append(list, fmt.Sprintf("%s:%s:%d", f.ID, f.State, max(f.Until, since)-since))
		}
	}
	a, b, unseen := slow("a"), slow("b"), slow("u")
	unseen.Seen = 0
	for n, c := range []struct {
		open []finding.Finding
		want string
	}{
		{[]finding.Finding{a, unseen}, "a:begins:0 u:begins:0"}, {[]finding.Finding{a, unseen}, ""}, {[]finding.Finding{b}, "b:begins:0 a:ends:1000000000 u:ends:5000000000"}, {nil, "b:ends:1000000000"}, {nil, ""},
	} {
		s.Found(t.Context(), c.open, now)
		if got := next(); got != c.want || len(s.Open()) != len(c.open) {
			t.Errorf("%d: %q, want %q; %d are open", n, got, c.want, len(s.Open()))
		}
	}
	s.Found(t.Context(), []finding.Finding{a}, now)
	next()
	if s.ForgetFindings(); len(s.Open()) != 0 || next() != "" {
		t.Error("what is forgotten is open, or ends")
	}
}

// A finding is logged at the level of its severity, and its end as information.
func TestLevelsOfFindings(t *testing.T) {
	for severity, want := range map[finding.Severity]string{finding.Info: "INFO", finding.Warning: "WARN", finding.Critical: "ERROR"} {
		for state, level := range map[finding.State]string{finding.Begins: want, finding.Ends: "INFO"} {
			s, log := quiet()
			f := slow("10.0.0.0/8")
			f.Severity, f.State = severity, state
			if s.logFinding(f); !strings.Contains(log.String(), "level="+level+" msg=\"finding "+string(state)+"\" kind=slow-network subject=10.0.0.0/8 interface=eth0") {
				t.Errorf("%v %s: %s", severity, state, log)
			}
		}
	}
}

// A log has its level and format; the journal has the time already, at the top level.
func TestLogger(t *testing.T) {
	for _, c := range []struct {
		log      settings.Log
		journal  bool
		has, not []string
	}{
		{settings.Log{Level: "info"}, false, []string{"time=", "level=INFO msg=shown g.time=1"}, []string{"hidden"}},
		{settings.Log{Level: "debug"}, true, []string{"level=INFO msg=shown g.time=1", "hidden"}, []string{" time=", "time=2"}},
		{settings.Log{Level: "warn"}, false, nil, []string{"shown"}},
		{settings.Log{Level: "info", Format: "json"}, false, []string{`{"time":`, `"msg":"shown"`, `"g":{"time":1}`}, []string{"hidden"}},
		{settings.Log{Level: "info", Format: "json"}, true, []string{`{"level":"INFO","msg":"shown","g":{"time":1}}`}, nil},
	} {
		var b bytes.Buffer
		l := slog.New(NewLogger(&b, c.log, c.journal))
		l.Debug("hidden")
		l.Info("shown", slog.Group("g", "time", 1))
		for _, text := range c.has {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%+v: %q is missing in %s", c, text, &b)
			}
		}
		for _, text := range c.not {
			if strings.Contains(b.String(), text) {
				t.Errorf("%+v: %q is in %s", c, text, &b)
			}
		}
	}
}

// expired is a context that takes only what is queued.
func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
