package past

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
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
