package prom

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/xdpmon/xdpmon/userspace/report"
)

func TestAddress(t *testing.T) {
	for text, want := range map[string]struct {
		address  string
		loopback bool
	}{
		":9400": {"127.0.0.1:9400", true}, "9400": {"127.0.0.1:9400", true}, "0.0.0.0:9400": {"0.0.0.0:9400", false},
		"[::]:9400": {"[::]:9400", false}, "localhost:0": {"localhost:0", false},
	} {
		address, loopback, err := Address(text)
		if err != nil || address != want.address || loopback != want.loopback {
			t.Errorf("Address(%q) = %q, %v, %v", text, address, loopback, err)
		}
	}
	for _, text := range []string{"", ":", "host", ":99999", "a:b:c", ":-1"} {
		if address, _, err := Address(text); !errors.Is(err, ErrListen) {
			t.Errorf("Address(%q) = %q, %v; want ErrListen", text, address, err)
		}
	}
}

func get(t *testing.T, handler http.Handler, path, accept string) *http.Response {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

func TestHandlerPaths(t *testing.T) {
	var errorLog bytes.Buffer
	s := NewStore(fixedClock)
	s.Start(report.Run{Version: "v0.1.0", Command: "attach", Interfaces: []string{"<eth0>"}})
	s.Add(line("fridge", 400))
	h := Handler(s, log.New(&errorLog, "", 0))
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/": {200, "fridge on eth0"}, "/metrics": {200, "xdpmon_fridge_matched_total"}, "/healthz": {200, "ok\n"}, "/other": {404, ""},
	} {
		got := get(t, h, path, "text/plain")
		body, _ := io.ReadAll(got.Body)
		if got.StatusCode != want.status || !strings.Contains(string(body), want.text) {
			t.Errorf("%s: %d %s", path, got.StatusCode, body)
		}
		if strings.Contains(string(body), "<eth0>") {
			t.Errorf("%s: a name was not escaped", path)
		}
	}
	if errorLog.Len() > 0 {
		t.Errorf("errors: %s", errorLog.String())
	}
}

// The page links to stored windows, if there are any.
func TestPageLooksBack(t *testing.T) {
	s := NewStore(fixedClock)
	h := Handler(s, log.New(io.Discard, "", 0))
	for _, stored := range []bool{false, true, false} {
		s.LookBack(stored)
		page, _ := io.ReadAll(get(t, h, "/", "text/html").Body)
		if got := strings.Contains(string(page), `href="history?`); got != stored {
			t.Errorf("windows are stored: %t, the page points to them: %t\n%s", stored, got, page)
		}
	}
}

// TestHealthFollowsTheAttachments: windows continue after the last interface was removed, without meaning.
func TestHealthFollowsTheAttachments(t *testing.T) {
	s := NewStore(fixedClock)
	s.Live()
	s.Start(report.Run{Interfaces: []string{"eth0", "eth1"}})
	h := Handler(s, log.New(io.Discard, "", 0))
	for _, step := range []struct {
		change func()
		status int
		health string
		metric string
	}{
		{func() {}, 503, "starting: nothing is attached yet\n", ""},
		{func() { s.Attached("eth0", true); s.Attached("eth1", true) }, 200, "ok\n", `xdpmon_interface_attached{instance_name="eth0,eth1",interface="eth1"} 1`},
		{func() { s.Attached("eth1", false) }, 200, "ok, but not attached to eth1\n", `xdpmon_interface_attached{instance_name="eth0,eth1",interface="eth1"} 0`},
		{func() { s.Attached("eth0", false) }, 503, "no interface attached: waiting for eth0, eth1\n", `xdpmon_interface_attached{instance_name="eth0,eth1",interface="eth0"} 0`},
		{func() { s.Attached("eth0", true) }, 200, "ok, but not attached to eth1\n", `xdpmon_interface_attached{instance_name="eth0,eth1",interface="eth0"} 1`},
	} {
		step.change()
		s.Add(line("fridge", 400))
		health := get(t, h, "/healthz", "text/plain")
		text, _ := io.ReadAll(health.Body)
		metrics, _ := io.ReadAll(get(t, h, "/metrics", "text/plain").Body)
		if health.StatusCode != step.status || string(text) != step.health || !strings.Contains(string(metrics), step.metric) {
			t.Errorf("want %d %q, got %d %q; want %q in the metrics", step.status, step.health, health.StatusCode, text, step.metric)
		}
	}
}

func TestNativeHistogramsAreServedAsProtobuf(t *testing.T) {
	s := NewStore(fixedClock)
	s.Add(line("fridge", 400))
	accept := "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	got := get(t, Handler(s, log.New(io.Discard, "", 0)), "/metrics", accept)
	decoder := expfmt.NewDecoder(got.Body, expfmt.ResponseFormat(got.Header))
	for {
		var f dto.MetricFamily
		if err := decoder.Decode(&f); err != nil {
			t.Fatalf("no histogram found: %v", err)
		}
		if f.GetName() == "xdpmon_fridge_delay_seconds" {
			if h := f.GetMetric()[0].GetHistogram(); len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) == 0 {
				t.Errorf("native spans %v, classic buckets %v", h.GetPositiveSpan(), h.GetBucket())
			}
			return
		}
	}
}

func TestHealthzTurnsStale(t *testing.T) {
	now := epoch
	s := NewStore(func() time.Time { return now })
	s.Start(report.Run{WindowNS: 10e9})
	h := Handler(s, log.New(io.Discard, "", 0))
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{40 * time.Second, 200}, {41 * time.Second, 503}} {
		now = epoch.Add(c.after)
		if got := get(t, h, "/healthz", "").StatusCode; got != c.want {
			t.Errorf("%v without a window: %d, want %d", c.after, got, c.want)
		}
	}
	s.Add(line("fridge", 1))
	if got := get(t, h, "/healthz", "").StatusCode; got != 200 {
		t.Errorf("after a window: %d", got)
	}
}

func TestListenAndClose(t *testing.T) {
	s := NewStore(fixedClock)
	server, err := Serve("127.0.0.1:0", Handler(s, log.New(io.Discard, "", 0)), log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(server.Address(), Handler(s, log.New(io.Discard, "", 0)), log.New(io.Discard, "", 0)); !errors.Is(err, ErrListen) {
		t.Errorf("a taken port gives %v", err)
	}
	answer, err := http.Get("http://" + server.Address() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		t.Error("nothing answers")
	}
	if h := &server.http; h.ReadHeaderTimeout == 0 || h.ReadTimeout == 0 || h.WriteTimeout == 0 || h.IdleTimeout == 0 || h.ErrorLog == nil {
		t.Errorf("an idle client keeps its connection forever: %+v", h)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + server.Address() + "/healthz"); err == nil {
		t.Error("it still answers after Close")
	}
}

// TestListenStatesTheRemedy: what helps depends on what is wrong with the address.
func TestListenStatesTheRemedy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, want := range map[string]string{"192.0.2.1:0": "no interface of this host has that address", taken.Addr().String(): "choose another port"} {
		_, err := Serve(address, Handler(NewStore(time.Now), log.New(io.Discard, "", 0)), log.New(io.Discard, "", 0))
		if !errors.Is(err, ErrListen) || !strings.Contains(err.Error(), want) {
			t.Errorf("Serve(%q): %v, want %q in it", address, err, want)
		}
	}
}

// Health is failing without an attachment or a fresh window; an interface that is not configured any more is not missing.
func TestHealthOfAttachments(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewStore(func() time.Time { return now })
	state := func(want bool, missing ...string) {
		t.Helper()
		answer, failing := s.Health()
		m := answer.(map[string]any)
		if failing != want || (m["status"] == "failing") != want || !slices.Equal(m["not_attached"].([]string), append([]string{}, missing...)) {
			t.Errorf("%v, failing %v, want %v and %q", m, failing, want, missing)
		}
	}
	state(false)
	s.Live()
	state(true)
	s.Attached("eth0", false)
	state(true, "eth0")
	s.Attached("eth1", true)
	state(false, "eth0")
	s.Gone("eth0")
	state(false)
	s.Gone("eth1")
	state(true)
}
