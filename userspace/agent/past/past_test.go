package past

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// answers on a socket as an agent does.
func answers(t *testing.T, answer http.HandlerFunc) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "agent.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := http.Server{Handler: answer}
	go s.Serve(l) //nolint:errcheck // it ends with Close
	t.Cleanup(func() { s.Close() })
	return socket
}

// The agent is sent the query, and its answer is used unchanged.
func TestAgentIsAsked(t *testing.T) {
	var asked string
	status, more := http.StatusOK, "true"
	socket := answers(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + "?" + r.URL.Query().Encode()
		w.Header().Set(api.MoreHeader, more)
		w.WriteHeader(status)
		fmt.Fprintln(w, "what there is")
	})
	from := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	for _, c := range []struct {
		q    store.Query
		want string
	}{
		{store.Query{}, "/api/v1/records?"},
		{store.Query{Algorithm: "lean", Instance: "a", Interface: "eth0", From: from, To: from.Add(time.Hour), Limit: 7, Newest: true, Snapshots: true},
			"/api/v1/records?algorithm=lean&from=2026-01-02T02%3A04%3A05.000000006Z&instance=a&interface=eth0&limit=7&newest=true&snapshots=true&to=2026-01-02T03%3A04%3A05.000000006Z"},
	} {
		text, cut, err := Recall(&config.Config{Socket: socket}, c.q)
		if err != nil || asked != c.want || string(text) != "what there is\n" || cut != (more == "true") {
			t.Errorf("%+v: %q, %v, %v; asked %s", c.q, text, cut, err, asked)
		}
		more = "false"
	}
	status = http.StatusNotFound
	if text, _, err := Recall(&config.Config{Socket: socket}, store.Query{}); text != nil || err == nil || err.Error() != "the agent answered: what there is" {
		t.Errorf("%q, %v", text, err)
	}
}

// If no agent answers, the store is read; without one this is an error.
func TestStoreIsReadWhereNoAgentAnswers(t *testing.T) {
	dir := t.TempDir()
	cfg := &config.Config{Socket: filepath.Join(dir, "agent.sock")}
	if _, _, err := Recall(cfg, store.Query{}); err == nil || !strings.Contains(err.Error(), "has no store") {
		t.Errorf("%v", err)
	}
	cfg.Store = &settings.Store{Path: filepath.Join(dir, "windows.db"), MaxAge: 24 * time.Hour, MaxBytes: 8 << 20}
	if _, _, err := Recall(cfg, store.Query{}); !os.IsNotExist(err) {
		t.Errorf("a store that is not there: %v", err)
	}
	s, err := store.Open(cfg.Store.Path, store.Options{MaxAge: cfg.Store.MaxAge, MaxBytes: cfg.Store.MaxBytes})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(store.Record{End: time.Now(), Algorithm: "lean", Instance: "eth0", Line: []byte(`{"x":1}`)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text, more, err := Recall(cfg, store.Query{}); err != nil || more || string(text) != "{\"x\":1}\n" {
		t.Errorf("%q, %v, %v", text, more, err)
	}
}

// Snapshots become files; an invalid one is reported, with the number of those before it.
func TestWrite(t *testing.T) {
	one := fmt.Sprintf(`{"end":1700000000000000000,"algorithm":"lean","interface":"eth0","snapshot":%q}`, base64.StdEncoding.EncodeToString([]byte("abc")))
	dir := t.TempDir()
	if n, err := Write([]byte(one+"\n"+strings.Replace(one, "lean", "hhh", 1)), dir); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "20231114T221320.000000000Z-lean-eth0.xdpsnap")); err != nil || string(text) != "abc" {
		t.Errorf("%q, %v", text, err)
	}
	if n, err := Write([]byte(one+"\nno"), dir); n != 1 || err == nil || !strings.Contains(err.Error(), "not valid JSON") {
		t.Errorf("%d, %v", n, err)
	}
}

// A window is a row; what it lacks is a dash.
func TestTable(t *testing.T) {
	got, err := Table([]byte(`{"window":{"end_time":"2026","start":1e9,"end":3.5e9,"cut":true,"last":true},"instance":"tenants","interfaces":["eth0","eth1"],"interface":"tenants","algorithm":"lean",`+
		`"packets":{"seen":12345678901234567890,"used":7},"lost":{"a":1,"b":2.25},"values":{"n":3}}`+"\n"+`{"window":{"end_time":"2025"},"interface":"a/eth0"}`+"\n{}\n"), []string{"values.n", "values.n.x"})
	want := `END   INSTANCE  INTERFACES  ALGORITHM  SECONDS  SEEN                  USED  LOST  MARKS     values.n  values.n.x
2026  tenants   eth0,eth1   lean       2.5      12345678901234567890  7     3.25  cut,last  3         -
2025  a/eth0    -           -          0.0      -                     -     0               -         -
-     -         -           -          0.0      -                     -     0               -         -`
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := Table([]byte("no\n"), nil); err == nil || !strings.Contains(err.Error(), "not valid JSON") {
		t.Errorf("%v", err)
	}
}

// What --show names has the unit of its name for people, and is as it was written for programs.
func TestShow(t *testing.T) {
	window := []byte(`{"window":{"end_time":"2026"},"instance":"a","interfaces":["eth0"],"algorithm":"fridge","packets":{"bytes":2048},"report":{"delay_ns":{"p99":12345678,"p99_low":9876543,"count":1234.5},"match_rate":0.985,"requests":70}}` + "\n")
	show := []string{"report.delay_ns.p99", "report.delay_ns.p99_low", "report.delay_ns.count", "packets.bytes", "report.match_rate", "report.requests", "report.none", "algorithm"}
	table, err := Table(window, show)
	if want := "12.3 ms              9.88 ms                  1,235                  2.00 KiB       98.5 %             70"; err != nil || !strings.Contains(table, want) {
		t.Errorf("%v: %s", err, table)
	}
	got, err := Select(window, append(show, "report.delay_ns", "report.requests"))
	if want := `{"window":{"end_time":"2026"},"instance":"a","interfaces":["eth0"],"algorithm":"fridge","report":{"delay_ns":{"p99":12345678,"p99_low":9876543,"count":1234.5},"match_rate":0.985,"requests":70,"none":null},"packets":{"bytes":2048}}` + "\n"; err != nil || string(got) != want {
		t.Errorf("%v: %s", err, got)
	}
	if _, err := Select([]byte("no\n"), show); err == nil {
		t.Error("what is no JSON was taken")
	}
}

// An error of the agent is its problem's detail, or the text that is no problem.
func TestDetail(t *testing.T) {
	for text, want := range map[string]string{`{"title":"Bad Request","detail":"limit: no number"}`: "limit: no number", `{"title":"Bad Request"}`: `{"title":"Bad Request"}`, " no JSON\n": "no JSON", `{"detail":`: `{"detail":`} {
		if got := detail([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Findings are sentences with their state; none is a sentence, too.
func TestSentences(t *testing.T) {
	one := finding.Finding{ID: "x", State: finding.Begins, Kind: finding.Scan, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Host, Name: "10.1.1.1"}, Interface: "eth0", Since: 1}
	text, err := json.Marshal(map[string]any{"finding": one})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := Sentences(append(append(text, '\n'), text...), report.Style{})
	if want := "begins, warning: " + one.Sentence(); err != nil || strings.Count(strings.Join(lines, " "), want) != 2 {
		t.Errorf("%q, %v, want %q twice", lines, err, want)
	}
	if lines, err := Sentences(nil, report.Style{}); err != nil || !slices.Equal(lines, []string{"nothing was found in this time"}) {
		t.Errorf("%q, %v", lines, err)
	}
	if _, err := Sentences([]byte("no"), report.Style{}); err == nil {
		t.Error("what is no JSON is a finding")
	}
}

// The unit is that of the nearest name that has one; a count has none of its parent's, and bounds have that of what they bound.
func TestUnits(t *testing.T) {
	for path, want := range map[string]report.Unit{
		"report.delay_ns.p99": report.Nanosecond, "report.delay_ns.p99_low": report.Nanosecond, "report.delay_ns.count": report.Count, "report.delay_ns.count_high": report.Count, "report.delay_ns": report.Nanosecond,
		"packets.bytes": report.Bytes, "report.flow_bytes_at_least": report.Bytes, "report.limit_bps": report.BitRate, "report.limit_bps_at_most": report.BitRate, "report.share": report.Ratio,
		"report.match_share": report.Ratio, "report.match_rate_high": report.Ratio, "report.delay_ns.share": report.Ratio, "bytes.packets": report.Bytes, "packets.seen": report.None, "algorithm": report.None, "report.nanoseconds": report.None,
	} {
		if got := unitOf(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// A path that is within another, or the same, is written once: as the first.
func TestDistinct(t *testing.T) {
	for _, c := range []struct{ paths, want []string }{
		{nil, nil}, {[]string{"a", "a"}, []string{"a"}}, {[]string{"a.b", "a"}, []string{"a.b"}}, {[]string{"a", "a.b", "ab"}, []string{"a", "ab"}}, {[]string{"ab", "a"}, []string{"ab", "a"}}, {[]string{"a.b", "a.c"}, []string{"a.b", "a.c"}},
	} {
		if got := distinct(c.paths); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.paths, got, c.want)
		}
	}
}

// An answer that is cut is an error, and no store is read instead of an agent that answers.
func TestAnswerIsCut(t *testing.T) {
	socket := answers(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprintln(w, "a part")
	})
	if _, _, err := Recall(&config.Config{Socket: socket}, store.Query{}); err == nil || strings.Contains(err.Error(), "no agent answers") {
		t.Errorf("%v", err)
	}
}
