package outlet

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// Everything that was published before the end is in the store, in any portions; readers of health block nothing.
func TestKeeper(t *testing.T) {
	set := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	hub, log := &set.hub, set.opts.Log
	c := settings.Store{Path: filepath.Join(t.TempDir(), "windows.db"), MaxAge: time.Hour, MaxBytes: 8 << 20}
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
		hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "a", Identity: report.Identity{Instance: "i"}, Window: report.Window{Number: n, End: hostclock.Now()}}})
	}
	all.Wait()
	hub.Close()
	if err := k.close(); err != nil || k.stored != windows || k.failed != 0 {
		t.Errorf("%d stored, %d failed, %v", k.stored, k.failed, err)
	}
}

// What a configuration names is written to from then on, what it does not name any more is closed, and nothing of that is trouble.
func TestCommit(t *testing.T) {
	dir := t.TempDir()
	var logged bytes.Buffer
	s := New(Options{Log: slog.New(slog.NewTextHandler(&logged, nil))})
	for n, name := range []string{"first", "second"} {
		o, err := s.Prepare(Config{Outputs: []settings.Output{{JSON: filepath.Join(dir, name+".json")}, {JSON: filepath.Join(dir, name+"-too.json")}},
			Store: &settings.Store{Path: filepath.Join(dir, name+".db"), MaxAge: time.Hour, MaxBytes: 8 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		s.Commit(o)
		s.Publish(t.Context(), report.Line{Algorithm: "a", Identity: report.Identity{Instance: "i"}, Window: report.Window{Number: n, End: hostclock.Now()}})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "first-too", "second", "second-too"} {
		if text, err := os.ReadFile(filepath.Join(dir, name+".json")); err != nil || bytes.Count(text, []byte("\n")) != 1 {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
	if logged.Len() > 0 {
		t.Errorf("logged: %s", &logged)
	}
}

// An output that cannot be written is reported, and no other.
func TestHealth(t *testing.T) {
	s := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Stdout: io.Discard})
	path := filepath.Join(t.TempDir(), "windows.db")
	o, err := s.Prepare(Config{Outputs: []settings.Output{{JSON: "-"}, {JSON: "/dev/full"}}, Store: &settings.Store{Path: path, MaxAge: time.Hour, MaxBytes: 8 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	if readers, stored := s.Health(); len(readers) != 0 || stored != nil {
		t.Errorf("before anything is opened: %v, %v", readers, stored)
	}
	s.Commit(o)
	for n := range 3 {
		s.Publish(t.Context(), report.Line{Algorithm: "a", Identity: report.Identity{Instance: "i"}, Window: report.Window{Number: n, End: hostclock.Now()}})
	}
	var readers []ReaderHealth
	var stored *StoreHealth
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if readers, stored = s.Health(); stored.Kept == 3 && slices.ContainsFunc(readers, func(r ReaderHealth) bool { return r.Error != "" }) {
			break
		}
	}
	if stored.Kept != 3 || stored.Failed != 0 || stored.Path != path || stored.Free <= 0 || stored.Error != "" || stored.Dropped != 0 {
		t.Errorf("%+v", stored)
	}
	for _, r := range readers {
		if full := r.Name == "json /dev/full"; (r.Error != "") != full || (r.Failed > 0) != full || r.Missed != 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(readers) != 3 {
		t.Errorf("%+v", readers)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Outputs in both configurations continue: each is written to once, in the file that has its name now.
func TestCommitAgain(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Handler: http.NotFoundHandler})
	c := Config{Outputs: []settings.Output{{JSON: filepath.Join(dir, "a")}, {JSON: filepath.Join(dir, "b")}},
		Store: &settings.Store{Path: filepath.Join(dir, "windows.db"), MaxAge: time.Hour, MaxBytes: 8 << 20}, Socket: filepath.Join(dir, "socket"), Listen: "127.0.0.1:0"}
	for n := range 3 {
		o, err := s.Prepare(c)
		if err != nil {
			t.Fatal(err)
		}
		if (o.store == nil) != (n > 0) || (o.socket == nil) != (n > 0) || (o.server == nil) != (n > 0) {
			t.Errorf("time %d: %+v", n, o)
		}
		s.Commit(o)
		if got := s.hub.Readers(); len(got) != 3 {
			t.Errorf("%d readers: %+v", len(got), got)
		}
		s.Publish(t.Context(), report.Line{Algorithm: "a", Identity: report.Identity{Instance: "i"}, Window: report.Window{Number: n, End: hostclock.Now()}})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || bytes.Count(text, []byte("\n")) != 3 {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
	if s.keeper.stored != 3 {
		t.Errorf("%d windows are stored", s.keeper.stored)
	}
}

// A query is parsed from its parameters; an invalid one is rejected, and one without a store is an error.
func TestHistory(t *testing.T) {
	s := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Handler: http.NotFoundHandler})
	ask := func(query string) (int, string, string) {
		w := httptest.NewRecorder()
		s.handler(api.Guard{Certified: true}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/history?"+query, nil))
		return w.Code, w.Body.String(), w.Header().Get(api.MoreHeader)
	}
	if code, text, _ := ask(""); code != http.StatusNotFound || text != "no store configured, windows are not stored\n" {
		t.Errorf("%d, %q", code, text)
	}
	o, err := s.Prepare(Config{Store: &settings.Store{Path: filepath.Join(t.TempDir(), "windows.db"), MaxAge: time.Hour, MaxBytes: 8 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	s.Commit(o)
	now := time.Now()
	var list []store.Record
	for n, name := range []string{"a", "b", "a"} {
		list = append(list, store.Record{End: now.Add(time.Duration(n-20) * time.Minute), Algorithm: name, Instance: "i", Interfaces: []string{"vnet0"}, Key: "i/vnet0", Line: []byte(strconv.Itoa(n)), Snapshot: []byte{byte(n)}})
	}
	if err := s.keeper.store.Append(list...); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"": "0\n1\n2\n", "algorithm=a": "0\n2\n", "interface=j": "", "instance=j": "", "instance=i&interface=vnet0&limit=1": "0\n", "limit=2": "0\n1\n", "newest=true&limit=1": "2\n", "from=19m30s": "1\n2\n",
		"to=" + now.Add(-19*time.Minute+time.Second).UTC().Format(time.RFC3339): "0\n1\n"} {
		if code, text, more := ask(query); code != http.StatusOK || text != want || more != "false" {
			t.Errorf("%s: %d, %q, more %s; want %q", query, code, text, more, want)
		}
	}
	if _, text, _ := ask("snapshots=true&limit=1"); !strings.Contains(text, `"algorithm":"a","instance":"i","interfaces":["vnet0"],"interface":"i/vnet0","snapshot":"AA=="`) {
		t.Errorf("%q", text)
	}
	for _, query := range []string{"limit=-1", "limit=x", "from=x", "to=x"} {
		if code, _, _ := ask(query); code != http.StatusBadRequest {
			t.Errorf("%s: %d", query, code)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A failing process answers 503, so that the status alone suffices; each path answers its own question.
func TestAnswers(t *testing.T) {
	s := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	health := "{\"it\":\"a<b\"}\n"
	for _, c := range []struct {
		path  string
		probe Probe
		code  int
		body  string
	}{
		{"/healthz", Probe{}, 200, health},
		{"/healthz", Probe{Failing: true, Ready: true}, 503, health},
		{"/livez", Probe{Failing: true}, 200, "live\n"},
		{"/livez", Probe{Ready: true, Stuck: true}, 503, "not live: /healthz has the reasons\n"},
		{"/readyz", Probe{Failing: true, Ready: true}, 200, "ready\n"},
		{"/readyz", Probe{}, 503, "not ready: /healthz has the reasons\n"},
	} {
		c.probe.Answer = map[string]string{"it": "a<b"}
		w := httptest.NewRecorder()
		s.Answers(func() Probe { return c.probe }, collectors.NewGoCollector()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		if w.Code != c.code || w.Body.String() != c.body {
			t.Errorf("%s of %+v: %d, %q", c.path, c.probe, w.Code, w.Body)
		}
		if kind := w.Header().Get("Content-Type"); (c.path == "/healthz") != (kind == "application/json") {
			t.Errorf("%s: %s", c.path, kind)
		}
	}
}

// Windows that an output was too slow for are reported, and the rest is written.
func TestSlowOutput(t *testing.T) {
	var hub feed.Hub
	var logged, text bytes.Buffer
	o := &output{cfg: settings.Output{JSON: "-"}, sink: newLines(staysOpen{&text}, false), log: slog.New(slog.NewTextHandler(&logged, nil)), clock: hostclock.Read, done: make(chan struct{}), sub: hub.Subscribe(feed.Options{Depth: 2})}
	for n := range 3 {
		hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "a", Window: report.Window{Number: n}}})
	}
	hub.Close()
	o.run()
	if !strings.Contains(logged.String(), "windows_lost=1") || bytes.Count(text.Bytes(), []byte("\n")) != 2 {
		t.Errorf("logged %q, written %q", &logged, &text)
	}
}

// half is a disk that is full in the middle of a line, once.
type half struct {
	bytes.Buffer
	full bool
}

func (h *half) Write(p []byte) (int, error) {
	if h.full {
		h.full = false
		n, _ := h.Buffer.Write(p[:len(p)/2])
		return n, syscall.ENOSPC
	}
	return h.Buffer.Write(p)
}

func (h *half) Close() error { return nil }

// An incomplete line stays alone: what is written after it starts a new line.
func TestTornLine(t *testing.T) {
	disk := &half{}
	sink := newLines(disk, false)
	o := &output{sink: sink, log: slog.New(slog.DiscardHandler)}
	write := func(text string) { o.do(func(Sink) error { return sink.write([]byte(text)) }) }
	write("{1}\n")
	disk.full = true
	write("{22}\n")
	o.do(func(Sink) error { return errors.New("not encoded") })
	write("{3}\n")
	write("{4}\n")
	if want := "{1}\n{2\n{3}\n{4}\n"; disk.String() != want || o.failed != 2 || o.err != nil {
		t.Errorf("%q, want %q; %d failed, %v", disk.String(), want, o.failed, o.err)
	}
}

// Free space is in bytes, and -1 without a disk.
func TestFree(t *testing.T) {
	dir := t.TempDir()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	want := int64(fs.Bavail) * fs.Bsize // others write meanwhile
	if free := (&keeper{cfg: settings.Store{Path: dir}}).free(); free < want/2 || free > 2*want {
		t.Errorf("%d bytes are free, want about %d", free, want)
	}
	if free := (&keeper{cfg: settings.Store{Path: filepath.Join(dir, "none")}}).free(); free != -1 {
		t.Errorf("%d bytes are free on no disk", free)
	}
}
