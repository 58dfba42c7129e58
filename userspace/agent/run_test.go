package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/outlet"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
	_ "github.com/xdpmon/xdpmon/userspace/rttarray"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// runs is an agent whose rules no interface fits: it loads nothing.
type runs struct {
	dir      string
	notified chan string
	gave     atomic.Int32 // how often privileges were given up
	again    chan os.Signal
	end      context.CancelFunc
	done     chan error
}

func (r *runs) configure(t *testing.T, more string) {
	t.Helper()
	text := "socket: " + r.dir + "/agent.sock\nbpffs: " + r.dir + "/bpf\ninstances:\n  - {name: a, interfaces: [xdpmon-none], each: true, algorithms: {fridge: }}\n" + more
	if err := os.WriteFile(r.dir+"/agent.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func begin(t *testing.T) *runs {
	t.Helper()
	r := &runs{dir: t.TempDir(), notified: make(chan string, 100), again: make(chan os.Signal), done: make(chan error, 1)}
	r.configure(t, "")
	var ctx context.Context
	ctx, r.end = context.WithCancel(t.Context())
	go func() {
		r.done <- Run(ctx, Options{Path: r.dir + "/agent.yaml", Log: func(settings.Log) slog.Handler { return slog.DiscardHandler }, Reload: r.again,
			Notify: func(state string) { r.notified <- state }, Settle: func() ([]string, error) { r.gave.Add(1); return nil, errors.New("kept all") }, Version: "7.8"})
	}()
	return r
}

// wait waits for a notification to the service manager with this prefix.
func (r *runs) wait(t *testing.T, prefix string) string {
	t.Helper()
	for {
		select {
		case state := <-r.notified:
			if strings.HasPrefix(state, prefix) {
				return state
			}
		case err := <-r.done:
			t.Fatalf("the agent ended before it logged %s: %v", prefix, err)
		case <-time.After(time.Minute):
			t.Fatalf("the agent did not log %s", prefix)
		}
	}
}

func (r *runs) get(t *testing.T, path string) (status int, text []byte) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.dir+"/agent.sock")
	}}}
	a, err := client.Get("http://agent" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(a.Body); err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, b.Bytes()
}

func (r *runs) health(t *testing.T) (h Health) {
	t.Helper()
	status, text := r.get(t, "/healthz")
	if err := json.Unmarshal(text, &h); err != nil || (status == http.StatusServiceUnavailable) != (h.Status == failing) || h.Status != failing && status != http.StatusOK {
		t.Fatalf("%d, %v: %s", status, err, text)
	}
	return h
}

// An agent starts without anything to measure and reports that it is ready, applies a valid configuration, keeps the previous one if it is invalid, and ends
// when it is stopped.
func TestRun(t *testing.T) {
	r := begin(t)
	if state := r.wait(t, "READY=1"); !strings.Contains(state, "failing: 0 instances on 0 interfaces; nothing is attached") {
		t.Errorf("%q", state)
	}
	if n := r.gave.Load(); n != 1 {
		t.Errorf("privileges were given up %d times", n)
	}
	if h := r.health(t); h.Status != failing || len(h.Reasons) != 1 || !strings.Contains(h.Reasons[0], "nothing is attached") || h.Version != "7.8" || h.Store != nil || h.Reloads != (Reloads{}) {
		t.Errorf("%+v", h)
	}
	if status, _ := r.get(t, "/history"); status != http.StatusNotFound {
		t.Errorf("history without a store: %d", status)
	}
	for _, c := range []struct {
		more    string
		reasons int // nothing is attached, and the last configuration was refused
		want    Reloads
	}{
		{"windw: 1s\n", 2, Reloads{0, 1, "did you mean window?"}},
		{"listen: ':999999'\n", 2, Reloads{0, 2, "not a TCP port"}},
		{"store: {path: " + r.dir + "/windows.db}\n", 1, Reloads{1, 2, ""}},
		{"store: {path: /dev/null/windows.db}\n", 2, Reloads{1, 3, "/dev/null"}},
		{"store: {path: " + r.dir + "/windows.db}\nlog: {level: debug}\n", 1, Reloads{2, 3, ""}},
	} {
		r.configure(t, c.more)
		r.again <- os.Interrupt
		r.wait(t, "RELOADING=1")
		r.wait(t, "READY=1")
		h := r.health(t)
		if h.Status != failing || len(h.Reasons) != c.reasons || h.Reloads.Taken != c.want.Taken || h.Reloads.Refused != c.want.Refused || !strings.Contains(h.Reloads.Error, c.want.Error) ||
			(c.want.Error == "") != (h.Reloads.Error == "") {
			t.Errorf("%q: %+v", c.more, h)
		}
	}
	if status, text := r.get(t, "/history"); status != http.StatusOK || len(text) != 0 {
		t.Errorf("history of an empty store: %d, %s", status, text)
	}
	r.end()
	r.wait(t, "STOPPING=1")
	if err := <-r.done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "agent.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// rules of a configuration, each on no interface.
func (r *runs) measure(t *testing.T, rules string) {
	t.Helper()
	text := "socket: " + r.dir + "/agent.sock\nbpffs: " + r.dir + "/bpf\nwindow: 100ms\noutputs: [{json: " + r.dir + "/windows.jsonl}]\ninstances:\n" + rules
	if err := os.WriteFile(r.dir+"/agent.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.again <- os.Interrupt
	r.wait(t, "READY=1")
}

// until health is as it should be.
func (r *runs) until(t *testing.T, what string, good func(Health) bool) Health {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		h := r.health(t)
		if good(h) {
			return h
		}
		if time.Now().After(end) {
			t.Fatalf("never %s: %+v", what, h)
		}
	}
}

// Instances measure before there is an interface for them (health is failing until then), change while running, and end when they are no longer configured; all of their windows are published.
func TestMeasures(t *testing.T) {
	testutil.NeedRoot(t)
	r := begin(t)
	r.wait(t, "READY=1")
	rule := func(name, more, entries string) string {
		return "  - {name: " + name + ", interfaces: [xdpmon-none]" + more + ", algorithms: {rtt-array: {entries: " + entries + "}}}\n"
	}
	r.measure(t, rule("a", "", "256"))
	first := r.until(t, "two windows", func(h Health) bool { return len(h.Instances) == 1 && h.Instances[0].Windows >= 2 })
	if i := first.Instances[0]; first.Status != failing || i.Name != "a" || len(i.Algorithms) != 1 || i.Algorithms[0] != "rtt-array" || i.Window != .1 || !i.Fresh || i.Error != "" ||
		i.Registers == 0 || first.Registers != i.Registers || len(i.Interfaces) != 0 {
		t.Errorf("%+v", first)
	}
	r.measure(t, rule("a", ", window: 150ms", "4096"))
	second := r.until(t, "it goes on", func(h Health) bool { return h.Instances[0].Windows > first.Instances[0].Windows+1 })
	if a := second.Instances[0]; a.Registers <= first.Registers || a.Window != .15 || second.Registers != a.Registers {
		t.Errorf("%+v, before %+v", second, first)
	}
	r.measure(t, rule("b", "", "256"))
	if third := r.until(t, "another one", func(h Health) bool {
		return len(h.Instances) == 1 && h.Instances[0].Windows >= 1 && h.Registers == first.Registers
	}); third.Instances[0].Name != "b" {
		t.Errorf("%+v", third)
	}
	r.end()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(r.dir + "/windows.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	type window struct {
		Number     int
		Start, End int64
		Last       bool
	}
	latest, runs := map[string]*window{}, 0
	for line := range bytes.Lines(text) {
		var l struct {
			Interface, Algorithm string
			Window               window
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.Algorithm == "" {
			runs++
			continue
		}
		before := latest[l.Interface]
		if l.Algorithm != "rtt-array" || before == nil && l.Window.Number != 0 || before != nil && (l.Window.Start != before.End || l.Window.Number < before.Number) {
			t.Errorf("%.300s\nfollows %+v", line, before)
		}
		latest[l.Interface] = &l.Window
	}
	if len(latest) != 2 || !latest["a"].Last || !latest["b"].Last || runs != 3 {
		t.Errorf("%v, %d descriptions", latest, runs)
	}
}

// An instance is fresh while windows arrive, within three of them and the time of loading; an interface is attached, or the reason is reported. The worst decides.
func TestHealth(t *testing.T) {
	const window = 10 * time.Second
	for _, c := range []struct {
		age    time.Duration // since the last window, or since it was opened
		came   bool
		closed bool
		fresh  bool
	}{{age: 44 * time.Second, fresh: true}, {age: 46 * time.Second}, {age: 44 * time.Second, came: true, fresh: true}, {age: 46 * time.Second, came: true}, {age: time.Hour, closed: true, fresh: true}} {
		a := &Agent{}
		w := newWorker(a, "it")
		w.rule.Window, w.open, w.opened = window, !c.closed, time.Now().Add(-c.age)
		if c.came {
			w.opened, w.last = time.Now().Add(-2*time.Hour), w.opened
		}
		i, stuck := w.health()
		if i.Fresh != c.fresh || stuck == c.fresh || !c.closed && (i.Age < c.age.Seconds() || i.Age > c.age.Seconds()+60) {
			t.Errorf("%+v: %+v, stuck %v", c, i, stuck)
		}
	}
	a := &Agent{}
	w := newWorker(a, "it")
	w.want.ifaces = []Link{{Name: "there", Index: 1, Guest: report.Guest{Kind: known.GuestDomain, Name: "web"}}, {Name: "gone", Index: 2}, {Name: "no", Index: 3}, {Name: "soon", Index: 4}}
	w.attached, w.lost["gone"], w.failed["no"] = map[string]int{"there": 1, "gone": 2}, true, attempt{err: errors.New("no room")}
	i, _ := w.health()
	var h Health
	h.instance(i, false)
	if h.interfaces != 1 || h.stuck || h.Status != degraded || len(h.Reasons) != 2 || !strings.Contains(h.Reasons[0], "not attached to gone: its programs were detached by another command") ||
		h.Reasons[1] != "it: not attached to no: no room" || i.Interfaces[0] != (InterfaceHealth{Name: "there", Index: 1, Guest: Guest{known.GuestDomain, "web"}, Serves: "web", Attached: true}) {
		t.Errorf("%+v", h)
	}
	h.instance(InstanceHealth{Name: "old", Age: 50}, true)
	h.instance(InstanceHealth{Name: "bad", Fresh: true, Error: "broken"}, false)
	h.outlets([]outlet.ReaderHealth{{Name: "json -"}, {Name: "json /x", Error: "full"}}, &outlet.StoreHealth{})
	if h.Status != failing || !h.stuck || strings.Join(h.Reasons[2:], "; ") != "old: no window for 50 s; bad: broken; output /x: full" {
		t.Errorf("%+v", h)
	}
	if got := h.summary(); got != "failing: 3 instances on 1 interfaces; "+h.Reasons[0] {
		t.Errorf("%q", got)
	}
	h = Health{Status: good}
	h.instance(InstanceHealth{Name: "blind", Fresh: true, Interfaces: []InterfaceHealth{{Name: "gone"}, {Name: "soon"}}}, false)
	if h.Status != failing || h.Reasons[0] != "blind: measures nothing: attached to none of its 2 interfaces" {
		t.Errorf("%+v", h)
	}
	h = Health{Status: good}
	h.outlets(nil, &outlet.StoreHealth{Error: "no disk"})
	if h.Status != failing || h.Reasons[0] != "the store fails: no disk" || (Health{Status: good}).summary() != "ok: 0 instances on 0 interfaces" {
		t.Errorf("%+v", h)
	}
}

// Windows of all hosts end together, at whole windows since 1970, and have the same number there.
func TestBoundary(t *testing.T) {
	a := &Agent{}
	for _, window := range []int64{1e8, 1e9, 60e9, 3600e9} {
		now := hostclock.Now()
		end := a.boundary(now, window)
		if end <= now || end > now+window+1e6 {
			t.Errorf("a window of %d ns that starts at %d ends at %d", window, now, end)
		}
		if rest := (end + hostclock.Read().UnixOffsetNS + window/2) % window; rest < window/2-1e7 || rest > window/2+1e7 { // the wall clock may be slewed meanwhile
			t.Errorf("windows of %d ns end %d ns from a whole one", window, rest-window/2)
		}
		before := uint64((hostclock.Now() + window/rounding + hostclock.Read().UnixOffsetNS) / window)
		if epoch := a.epoch(window); epoch < before || epoch > before+1 {
			t.Errorf("the window of %d ns has number %d, not %d", window, epoch, before)
		}
	}
}

// A coordinator's plan is checked as a configuration is.
func TestFollow(t *testing.T) {
	fridge := []bus.Chosen{{Name: "fridge", Params: map[string]string{"fridges": "256@1"}}}
	right := bus.Measurement{Name: "a", WindowNS: 1e9, Seed: 3, CRC: true, Decap: true, Algorithms: fridge}
	for what, c := range map[string]struct {
		change  func(*bus.Measurement)
		message string
	}{
		"right": {func(*bus.Measurement) {}, ""}, "another": {func(m *bus.Measurement) { m.Name = "b" }, "no measurement of this name"},
		"shortest": {func(m *bus.Measurement) { m.WindowNS = 1e8 }, ""}, "too short": {func(m *bus.Measurement) { m.WindowNS = 1e8 - 1 }, "a window of"},
		"longest": {func(m *bus.Measurement) { m.WindowNS = 86400e9 }, ""}, "too long": {func(m *bus.Measurement) { m.WindowNS = 86400e9 + 1 }, "a window of 24h0m0"},
		"no seed": {func(m *bus.Measurement) { m.Seed = 0 }, "a window of"}, "nothing": {func(m *bus.Measurement) { m.Algorithms = nil }, "with 0 algorithms"},
		"unknown": {func(m *bus.Measurement) { m.Algorithms = []bus.Chosen{{Name: "frige"}} }, "frige"},
		"a parameter": {func(m *bus.Measurement) {
			m.Algorithms = []bus.Chosen{{Name: "fridge", Params: map[string]string{"x": "1"}}}
		}, "x"},
		"refused": {func(m *bus.Measurement) {
			m.Algorithms = []bus.Chosen{{Name: "fridge", Params: map[string]string{"fridges": "7@1"}}}
		}, "fridges"},
		"acting": {func(m *bus.Measurement) { m.Algorithms = []bus.Chosen{{Name: "test-acts"}} }, "acts on packets"},
	} {
		m := right
		c.change(&m)
		r, err := follow(config.Instance{Name: "a"}, &bus.Plan{Measurements: []bus.Measurement{m}})
		if c.message != "" {
			if err == nil || !strings.Contains(err.Error(), c.message) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil || r.Window != time.Duration(m.WindowNS) || r.Seed != 3 || r.Hash != algo.HashCRC || !r.Decap || len(r.Algorithms) != 1 || r.Algorithms[0].Values.Text("fridges") != "256@1" {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
}

func init() {
	algo.Register(&algo.Descriptor{Name: "test-acts", Enforces: true})
}

// A window of a single interface has the guest of that interface, and so has the instance if the window has.
func TestEmit(t *testing.T) {
	a := &Agent{out: outlet.New(outlet.Options{Log: slog.New(slog.DiscardHandler)}), ctx: t.Context()}
	sub := a.out.Hub().Subscribe(feed.Options{Depth: 9})
	web := report.Guest{Kind: known.GuestDomain, Name: "web"}
	for _, ifaces := range [][]Link{{{Name: "eth0", Guest: web}, {Name: "eth1", Guest: web}}, {{Name: "eth0", Guest: web}}} {
		w := newWorker(a, "it")
		w.want.ifaces = ifaces
		if err := w.emit(report.Line{Algorithm: "x", Window: report.Window{Number: 4}, Report: report.Body{Notes: []string{"long"}}}); err != nil {
			t.Fatal(err)
		}
		e, _, err := sub.Next(t.Context())
		if err != nil || (e.Line.Guest == web) != (len(ifaces) == 1) || len(e.Line.Report.Notes) != 1 {
			t.Errorf("%+v, %v", e.Line, err)
		}
		if w.windows != 5 || w.last.IsZero() || len(w.lines["x"].Report.Notes) != 0 {
			t.Errorf("%+v", w)
		}
	}
}

// A pin is called like its instance where that can be, and else like no other.
func TestPinName(t *testing.T) {
	long := strings.Repeat("n", 41)
	seen := map[string]string{}
	for name, want := range map[string]string{"a": "agent-a", "A_b-9": "agent-A_b-9", long[:40]: "agent-" + long[:40], long: "agent-" + long[:40] + "-", "a/eth0": "agent-a-eth0-",
		"a-eth0": "agent-a-eth0", "a.eth0": "agent-a-eth0-", long + "/eth0": "agent-" + long[:40] + "-", "": "agent-"} {
		got := pinName(name)
		if seen[got] != "" || !strings.HasPrefix(got, want) || (got == want) == strings.HasSuffix(want, "-") && name != "" {
			t.Errorf("%q is pinned as %q (%q, too), want %q", name, got, seen[got], want)
		}
		seen[got] = name + " "
	}
}

// What an instance takes is counted once, whatever it changes, up to the limit and not above it.
func TestAccountsChange(t *testing.T) {
	d, err := algo.Lookup("fridge")
	if err != nil {
		t.Fatal(err)
	}
	rule := func(fridges string) config.Instance {
		v, err := algo.NewValues(d.Name, d.Params, map[string]string{"fridges": fridges})
		if err != nil {
			t.Fatal(err)
		}
		return config.Instance{Algorithms: []session.Selected{{Descriptor: d, Values: v}}}
	}
	small, large := rule("1024@1"), rule("4096@1")
	little, _ := small.Memory()
	much, _ := large.Memory()
	m := &accounts{}
	m.limit(much)
	if n, err := m.reserve("a", small); err != nil || n != little {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := m.reserve("a", large); err != nil || n != much {
		t.Errorf("all that there is: %d, %v", n, err)
	}
	m.back("a", small)
	if all, one := m.used("a"); all != little || one != little {
		t.Errorf("%d of %d", one, all)
	}
	m.limit(much - 1)
	if _, err := m.reserve("a", large); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("needs %d bytes of registers, limits.memory leaves %d of %d", much, much-1, much-1)) {
		t.Errorf("more than there is: %v", err)
	}
	if all, _ := m.used(""); all != little {
		t.Errorf("what was refused is counted: %d", all)
	}
}
