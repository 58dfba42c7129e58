package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/outlet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// fridges is a rule with one fridge.
func fridges(t *testing.T, entries string) config.Instance {
	t.Helper()
	d, err := algo.Lookup("fridge")
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, map[string]string{"fridges": entries + "@1"})
	if err != nil {
		t.Fatal(err)
	}
	return config.Instance{Name: "each", Each: true, Window: time.Second, Algorithms: []session.Selected{{Descriptor: d, Values: v}}}
}

// A target that is the same wakes nobody; another rule ends the pause after a failure, another interface does not.
func TestTargets(t *testing.T) {
	w := newWorker(&Agent{log: slog.New(slog.DiscardHandler)}, "it")
	woken := func() bool {
		select {
		case <-w.wake:
			return true
		default:
			return false
		}
	}
	if w.retry() != nil || !w.due() || !w.firstTry() {
		t.Error("a new worker waits for a next attempt")
	}
	first := desired{rule: config.Instance{Name: "it"}}
	if w.set(first); !woken() || w.caughtUp() {
		t.Error("the first target has no effect")
	}
	w.settled = 1
	if w.set(first); woken() || !w.caughtUp() {
		t.Error("the same target is another one")
	}
	w.fail("load", errors.New("no"))
	if w.due() || w.firstTry() || w.retry() == nil {
		t.Error("no attempt is due after a failure")
	}
	first.ifaces = []Link{{Name: "eth0"}}
	if w.set(first); !woken() || w.caughtUp() || w.due() {
		t.Error("another interface: no pause")
	}
	first.rule.Window = time.Second
	if w.set(first); !woken() || !w.due() || w.firstTry() == false {
		t.Error("another rule: the pause goes on")
	}
	if got, _ := w.wanted(); got.rule.Window != time.Second || w.ruleNow().Window != time.Second {
		t.Errorf("%+v", got)
	}
}

// The earliest of the next attempts counts.
func TestRetry(t *testing.T) {
	w := newWorker(&Agent{log: slog.New(slog.DiscardHandler)}, "it")
	soon := func() bool {
		select {
		case <-w.retry():
			return true
		case <-time.After(time.Millisecond):
			return false
		}
	}
	w.failed["a"] = attempt{next: time.Now().Add(time.Hour)}
	if soon() {
		t.Error("an attempt in an hour is due")
	}
	w.failed["b"] = attempt{next: time.Now().Add(-time.Second)}
	if !soon() {
		t.Error("one that is due waits for another")
	}
	delete(w.failed, "b")
	w.trouble.next = time.Now().Add(-time.Second)
	if !soon() {
		t.Error("that of the instance waits for that of an interface")
	}
}

// A failure is logged once, with its pause; the same one again is not.
func TestFailuresAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	w := newWorker(&Agent{log: slog.New(slog.NewTextHandler(&log, nil))}, "it")
	for range 2 {
		w.fail("load an instance", io.ErrUnexpectedEOF)
		w.refused(Link{Name: "eth0"}, io.ErrUnexpectedEOF)
	}
	if n := strings.Count(log.String(), "unexpected EOF"); n != 2 || strings.Count(log.String(), "again_in=1s") != 2 || w.failed["eth0"].pause != 2*time.Second || w.trouble.pause != 2*time.Second {
		t.Errorf("%d lines, next attempts in %v and %v: %s", n, w.trouble.pause, w.failed["eth0"].pause, &log)
	}
	if w.fail("load an instance", io.ErrClosedPipe); !strings.Contains(log.String(), "closed pipe") {
		t.Errorf("another reason is not logged: %s", &log)
	}
}

// What a running session can change is compared by value.
func TestMeasured(t *testing.T) {
	one, longer := fridges(t, "256"), fridges(t, "256")
	longer.Window = time.Minute
	other := fridges(t, "512")
	for _, c := range []struct {
		rule config.Instance
		same bool
	}{{fridges(t, "256"), true}, {longer, false}, {other, false}, {config.Instance{Window: time.Second}, false}} {
		if same := fmt.Sprint(measured(one)) == fmt.Sprint(measured(c.rule)); same != c.same {
			t.Errorf("%+v: the same is %v", c.rule, same)
		}
	}
}

// Programs are loaded for as many instances as wait or run, within the memory; without each for one.
func TestAlike(t *testing.T) {
	rule := fridges(t, "256")
	bytes, err := rule.Memory()
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{workers: map[string]*worker{}}
	a.memory.limit(100 * bytes)
	add := func(name, rule string, open bool) {
		w := newWorker(a, name)
		w.want.rule.Name, w.open = rule, open
		a.workers[name] = w
	}
	for i := range 5 {
		add(fmt.Sprint("waits", i), "each", false)
		add(fmt.Sprint("other", i), "other", true)
	}
	for i := range 3 {
		add(fmt.Sprint("runs", i), "each", true)
	}
	if n := a.alike(rule); n != 5 {
		t.Errorf("for %d, want those that wait: 5", n)
	}
	for i := range 4 {
		add(fmt.Sprint("later", i), "each", true)
	}
	if n := a.alike(rule); n != 7 {
		t.Errorf("for %d, want those that run: 7", n)
	}
	a.memory.put("others", 97*bytes)
	if n := a.alike(rule); n != 4 {
		t.Errorf("for %d, want this one and what memory is left: 4", n)
	}
	a.memory.put("others", 101*bytes)
	if n := a.alike(rule); n != 1 {
		t.Errorf("for %d, want this one", n)
	}
	rule.Each = false
	if n := a.alike(rule); n != 0 {
		t.Errorf("for %d, want no sharing", n)
	}
}

// What is detached is lost until it is attached again.
func TestChanged(t *testing.T) {
	w := newWorker(&Agent{log: slog.New(slog.DiscardHandler)}, "it")
	w.changed("eth0", false)
	w.changed("eth1", false)
	if w.changed("eth1", true); !maps.Equal(w.lost, map[string]bool{"eth0": true}) {
		t.Errorf("lost: %v", w.lost)
	}
	w.attached["eth0"], w.lines["fridge"], w.open = 1, report.Line{}, true
	w.agent.memory.put("it", 7)
	if w.forget(); w.open || len(w.lost)+len(w.attached)+len(w.lines) > 0 {
		t.Errorf("%+v", w)
	}
	if all, _ := w.agent.memory.used(""); all != 0 {
		t.Errorf("%d bytes are still counted", all)
	}
	w.rule.Snapshots = true
	if w.keepSnapshots(desired{rule: config.Instance{Shared: true}}); !w.rule.Snapshots { // no session is asked
		t.Error("a shared instance without snapshots")
	}
}

// A link is opened again if any of its settings differs.
func TestSameBus(t *testing.T) {
	whole := func() config.Bus {
		return config.Bus{Servers: []string{"a", "b"}, Name: "n", Buffer: 5, Plan: "p", Keys: &keys.Files{CA: "ca"}}
	}
	for what, change := range map[string]func(*config.Bus){
		"servers": func(b *config.Bus) { b.Servers = b.Servers[:1] }, "name": func(b *config.Bus) { b.Name = "m" }, "buffer": func(b *config.Bus) { b.Buffer = 6 },
		"plan": func(b *config.Bus) { b.Plan = "q" }, "no keys": func(b *config.Bus) { b.Keys = nil }, "other keys": func(b *config.Bus) { b.Keys.CA = "cb" },
	} {
		a, b := whole(), whole()
		if !sameBus(&a, &b) {
			t.Error("the same is another")
		}
		if change(&b); sameBus(&a, &b) || sameBus(&b, &a) {
			t.Errorf("%s: not seen", what)
		}
	}
	a, b := whole(), whole()
	if a.Keys, b.Keys = nil, nil; !sameBus(&a, &b) {
		t.Error("without keys it is another")
	}
}

// A coordinator gets as many findings and subjects as fit into a message, and the number of the others.
func TestFoundWithinLimits(t *testing.T) {
	a := &Agent{out: outlet.New(outlet.Options{Log: slog.New(slog.DiscardHandler), Stdout: io.Discard})}
	var open []finding.Finding
	for i := range bus.MaxFindings + 2 {
		f := finding.Finding{ID: fmt.Sprint(i), State: finding.Begins, Kind: finding.Scan, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Host, Name: fmt.Sprintf("10.0.0.%d", i)}, Interface: "eth0", Since: 1}
		if i == 1 {
			f.Next = strings.Repeat("n", bus.MaxFindingSize)
		}
		open = append(open, f)
	}
	a.out.Found(t.Context(), open, time.Now())
	items, more, _ := a.found()
	if len(items) != bus.MaxFindings || more != 2 || !strings.Contains(string(items[0]), "10.0.0.0") || !strings.Contains(string(items[1]), "10.0.0.2") {
		t.Errorf("%d findings and %d more", len(items), more)
	}
}

// The state of the link to the coordinator is part of the health: which coordinator is missing, and what it has not sent.
func TestLinkHealth(t *testing.T) {
	r := begin(t)
	r.wait(t, "READY=1")
	r.configure(t, "bus: {servers: ['nats://127.0.0.1:1'], name: host.1, plan: "+r.dir+"/plan}\n")
	r.again <- os.Interrupt
	r.wait(t, "READY=1")
	h := r.until(t, "a reason", func(h Health) bool { return h.Bus != nil && h.Bus.Trouble != "" })
	if h.Bus.Connected || h.Bus.Answered != -1 || !slices.ContainsFunc(h.Reasons, func(s string) bool { return strings.HasPrefix(s, "no coordinator is connected: dial: ") }) {
		t.Errorf("%+v, %+v", h, h.Bus)
	}
	if status, text := r.get(t, "/metrics"); status != http.StatusOK || !strings.Contains(string(text), "\nxdpmon_agent_bus_connected 0\n") ||
		!strings.Contains(string(text), "\nxdpmon_agent_reloads_total{result=\"taken\"} 1\n") || !strings.Contains(string(text), "\nxdpmon_agent_reloads_total{result=\"refused\"} 0\n") ||
		!strings.Contains(string(text), "\nxdpmon_agent_healthy 0\n") || strings.Contains(string(text), "xdpmon_agent_store_") {
		t.Errorf("%d: %s", status, text)
	}
	r.configure(t, "store: {path: "+r.dir+"/windows.db}\n")
	r.again <- os.Interrupt
	r.wait(t, "RELOADING=1")
	r.wait(t, "READY=1")
	if h := r.health(t); h.Bus != nil || slices.ContainsFunc(h.Reasons, func(s string) bool { return strings.Contains(s, "coordinator") }) {
		t.Errorf("without a coordinator: %+v", h)
	}
	if _, text := r.get(t, "/metrics"); strings.Contains(string(text), "xdpmon_agent_bus_") || !strings.Contains(string(text), "\nxdpmon_agent_store_kept_windows_total 0\n") {
		t.Errorf("%s", text)
	}
	r.end()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

// Namespaces that no interface has any more are forgotten: their IDs may be used again.
func TestNamespacesAreForgotten(t *testing.T) {
	n := newNamer(config.Names{Namespaces: true}, slog.New(slog.DiscardHandler))
	n.root = t.TempDir()
	n.seen[3], n.seen[4], n.unknown[5], n.unknown[6] = report.Guest{Name: "three"}, report.Guest{Name: "four"}, tries, tries
	links := []Link{{Kind: "veth", Namespace: 3}, {Kind: "veth", Namespace: 5}, {Kind: "dummy", Namespace: 4}, {Kind: "veth", Namespace: -1}, {Kind: "dummy", Namespace: 3}}
	n.name(links)
	if len(n.seen) != 1 || n.seen[3].Name != "three" || !maps.Equal(n.unknown, map[int]int{5: tries}) || links[0].Guest.Name != "three" || links[3].Guest.Name+links[4].Guest.Name != "" {
		t.Errorf("seen %v, unknown %v, links %+v", n.seen, n.unknown, links)
	}
}

// A description that cannot be read is reported once, and one that is too large is not read.
func TestUnreadableDomains(t *testing.T) {
	var log bytes.Buffer
	n := newNamer(config.Names{Libvirt: true}, slog.New(slog.NewTextHandler(&log, nil)))
	n.root = t.TempDir()
	dir := filepath.Join(n.root, "run/libvirt/lxc")
	for _, name := range []string{"a.xml", "b.xml"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const text = `<domstatus><domain><name>web</name><devices><interface><target dev='vnet0'/></interface></devices></domain></domstatus>`
	for name, size := range map[string]int{"c.xml": maxXML, "d.xml": maxXML + 1} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "vnet0", name)+strings.Repeat(" ", size-len(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.domains(); !maps.Equal(got, map[string]string{"c.xml": "web"}) || strings.Count(log.String(), "unavailable") != 1 {
		t.Errorf("%v, %s", got, &log)
	}
}

// The coordinator's plan is there again after a restart, for nobody else to read; what is damaged is none.
func TestPlanIsRemembered(t *testing.T) {
	var log bytes.Buffer
	a := &Agent{log: slog.New(slog.NewTextHandler(&log, nil))}
	path := filepath.Join(t.TempDir(), "plan")
	if a.recall(path) != nil || log.Len() > 0 {
		t.Errorf("a plan before there is one; logged: %s", &log)
	}
	for revision := range uint64(2) {
		if err := a.remember(path, &bus.Plan{Revision: revision, Measurements: []bus.Measurement{{Name: "m", Seed: 5}}}); err != nil {
			t.Fatal(err)
		}
		m, ok := a.recall(path).Find("m")
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || !ok || m.Seed != 5 || a.recall(path).Revision != revision {
			t.Errorf("%v, %v, %+v", info.Mode(), err, m)
		}
	}
	if err := os.WriteFile(path, []byte("no plan"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a.recall(path) != nil || !strings.Contains(log.String(), "unreadable") {
		t.Errorf("a damaged plan; logged: %s", &log)
	}
	if err := a.remember(path+"/none", &bus.Plan{}); err == nil {
		t.Error("stored nowhere")
	}
}

// What a configuration means on this host is a line for each rule, with its memory for all interfaces that it is on, and the sum.
func TestPreview(t *testing.T) {
	each, shared, one := fridges(t, "256"), config.Instance{Name: "shared", Shared: true, Interfaces: []string{"lo"}}, fridges(t, "512")
	each.Interfaces, one.Each, one.Name, one.Interfaces = []string{"lo"}, false, "one", []string{"xdpmon-none"}
	small, _ := each.Memory()
	large, _ := one.Memory()
	lines, err := Preview(&config.Config{Instances: []config.Instance{each, shared, one}, Limits: config.Limits{Memory: 7, Heap: 8}})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{fmt.Sprintf("each: fridge; now on lo; %d bytes of registers for each, %d now", small, small), "shared: as the coordinator sets; now on lo", fmt.Sprintf("one: fridge; now on no interface; %d bytes of registers\n", large),
		fmt.Sprintf("in total %d bytes of registers (limit 7), and a heap limit of about 8", small+large)} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if _, err := Preview(&config.Config{Names: config.Names{Databases: []string{"/none.mmdb"}}}); err == nil {
		t.Error("a database that is not there can be read")
	}
}
