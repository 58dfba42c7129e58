package agent

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/fridge" // an instance that takes memory
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestFits(t *testing.T) {
	rule := config.Instance{Interfaces: []string{"tap*", "vnet[0-9]"}, Kinds: []string{"tap", "veth"}, Exclude: []string{"*x"}}
	for _, c := range []struct {
		link Link
		want bool
	}{
		{Link{Name: "tap0", Kind: "tap"}, true}, {Link{Name: "tap0", Kind: "dummy"}, false}, {Link{Name: "vnet12", Kind: "tap"}, false},
		{Link{Name: "vnet1", Kind: "veth"}, true}, {Link{Name: "tapx", Kind: "tap"}, false}, {Link{Name: "eth0", Kind: "veth"}, false},
	} {
		if got := fits(rule, c.link); got != c.want {
			t.Errorf("%+v: %v", c.link, got)
		}
	}
	if !fits(config.Instance{Kinds: []string{"physical"}}, Link{Name: "eth0", Kind: "physical"}) {
		t.Error("a kind alone does not choose")
	}
}

// Running instances are kept before new ones, and a limit that is reached excludes the rest.
func TestLimits(t *testing.T) {
	a := &Agent{log: slog.New(slog.NewTextHandler(io.Discard, nil)), workers: map[string]*worker{}, left: map[string]string{}}
	a.cfg = &config.Config{Limits: config.Limits{Interfaces: 3, Instances: 2},
		Instances: []config.Instance{{Name: "all", Kinds: []string{"veth"}}, {Name: "each", Each: true, Interfaces: []string{"e*"}}}}
	var links []Link
	for i := range 5 {
		links = append(links, Link{Index: i + 1, Name: fmt.Sprintf("v%d", i), Kind: "veth"})
	}
	running := newWorker(a, "all")
	running.want = desired{ifaces: links[3:]}
	a.workers["all"] = running
	if got := a.wanted(links)["all"].names(); strings.Join(got, " ") != "v0 v3 v4" || len(a.left) != 2 {
		t.Errorf("%v, left alone %v", got, a.left)
	}
	links = []Link{{Index: 1, Name: "e1"}, {Index: 2, Name: "e2"}}
	if got := a.wanted(links); len(got) != 2 || len(got["each/e1"].ifaces) != 1 || a.left["e2"] != "limits.instances: 2" {
		t.Errorf("%v, left alone %v", got, a.left)
	}
}

func TestContainer(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for group, want := range map[string]string{
		"0::/system.slice/docker-" + id + ".scope\n": "container 0123456789ab",
		"12:cpu:/docker/" + id + "\n":                "container 0123456789ab",
		"0::/kubepods.slice/kubepods-pod1b4e28ba_2fa1_11d2_883f_0016d3cca427.slice/cri-containerd-" + id + ".scope\n": "pod 1b4e28ba-2fa1-11d2-883f-0016d3cca427",
		"0::/kubepods/besteffort/pod1b4e28ba-2fa1-11d2-883f-0016d3cca427/" + id + "\n":                                "pod 1b4e28ba-2fa1-11d2-883f-0016d3cca427",
		"0::/lxc.payload.web\n": "lxc web",
		"0::/init.scope\n":      "", "0::/user.slice/user-1000.slice\n": "",
	} {
		if got := container(group); got.String() != want {
			t.Errorf("%q: %q, want %q", group, got, want)
		}
	}
}

// A domain's description names the interface on this side; one that is cut or is no XML names nothing.
func TestDomains(t *testing.T) {
	n := newNamer(config.Names{Libvirt: true}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	n.root = t.TempDir()
	dir := filepath.Join(n.root, "run/libvirt/qemu")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"web.xml": `<domstatus state='running'><domain type='kvm' id='3'><name>web</name><devices><interface type='bridge'>
<target dev='vnet0'/></interface><interface type='network'><target dev='vnet1'/></interface></devices></domain></domstatus>`,
		"cut.xml": `<domstatus><domain><name>cut</name><devices><interf`, "autostart.conf": "no XML",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := []Link{{Name: "vnet0"}, {Name: "vnet1"}, {Name: "vnet2"}}
	n.name(links)
	web := report.Guest{Kind: known.GuestDomain, Name: "web"}
	if links[0].Guest != web || links[1].Guest != web || links[2].Guest.Name != "" {
		t.Errorf("%+v", links)
	}
	n.cfg.Libvirt = false
	links[0].Guest = report.Guest{}
	if n.name(links); links[0].Guest.Name != "" {
		t.Error("named although it was not asked for")
	}
}

func TestAccounts(t *testing.T) {
	m := &accounts{}
	m.limit(100)
	m.put("a", 60)
	if all, one := m.used("a"); all != 60 || one != 60 {
		t.Errorf("%d %d", all, one)
	}
	m.release("a")
	if all, _ := m.used(""); all != 0 {
		t.Errorf("%d", all)
	}
}

// An instance that changes gives back what it had: what it takes now may need that room.
func TestReserveAgain(t *testing.T) {
	d, err := algo.Lookup("fridge")
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	rule := config.Instance{Algorithms: []session.Selected{{Descriptor: d, Values: v}}}
	takes, err := rule.Memory()
	if err != nil || takes == 0 {
		t.Fatalf("it takes %d, %v", takes, err)
	}
	m := &accounts{}
	m.limit(takes + takes/2)
	for range 2 {
		if _, err := m.reserve("a", rule); err != nil {
			t.Errorf("reserve: %v", err)
		}
	}
	if _, err := m.reserve("b", rule); err == nil {
		t.Error("another one fits as well")
	}
}

// All losses are reported, and nothing else.
func TestHealthReportsLosses(t *testing.T) {
	w := newWorker(&Agent{}, "it")
	w.lines["fridge"] = report.Line{Lost: map[string]uint64{"evicted": 3, "too_long": 4, "late": 0}}
	w.lines["lean"] = report.Line{Lost: map[string]uint64{"reports": 0}}
	w.lines["hhh"] = report.Line{Lost: map[string]uint64{"no_key": 1}}
	i, _ := w.health()
	if len(i.Lost) != 2 || i.Lost["hhh"]["no_key"] != 1 || len(i.Lost["fridge"]) != 2 || i.Lost["fridge"]["evicted"] != 3 || i.Lost["fridge"]["too_long"] != 4 {
		t.Errorf("lost %v", i.Lost)
	}
}

// A namespace that none of the processes has is not looked for again and again.
// A required interface that is not attached fails the agent, with the reason; that others are is no excuse.
func TestRequired(t *testing.T) {
	rules := []config.Instance{{Name: "uplink", Required: []string{"eth*", "bond0"}}}
	for _, c := range []struct {
		interfaces []InterfaceHealth
		status     string
		message    []string
	}{
		{[]InterfaceHealth{{Name: "eth1", Attached: true}, {Name: "bond0", Attached: true}}, good, nil},
		{[]InterfaceHealth{{Name: "eth1", Attached: true}, {Name: "eth0"}}, failing, []string{"uplink: required interface bond0 is not attached: no interface that the rule matches has this name"}},
		{[]InterfaceHealth{{Name: "eth1", Error: "refused"}, {Name: "bond0"}}, failing,
			[]string{"uplink: required interface eth* is not attached: refused", "uplink: required interface bond0 is not attached: it is being attached"}},
	} {
		h := Health{Status: good, Instances: []InstanceHealth{{Name: "other", Instance: "other", Interfaces: []InterfaceHealth{{Name: "bond0", Attached: true}}}, {Name: "uplink", Instance: "uplink", Interfaces: c.interfaces}}}
		if h.required(rules); h.Status != c.status || !slices.Equal(h.Reasons, c.message) {
			t.Errorf("%v: %s, %q", c.interfaces, h.Status, h.Reasons)
		}
	}
}

func TestLooksForANamespaceSomeTimes(t *testing.T) {
	n := newNamer(config.Names{Namespaces: true}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	n.root = t.TempDir()
	for range 2 * tries {
		n.namespaces([]Link{{Kind: "veth", Namespace: 7}})
	}
	if n.unknown[7] != tries {
		t.Errorf("looked %d times, want %d", n.unknown[7], tries)
	}
}

// Failures are reported by the health, and block nothing.
func TestTroubleIsReported(t *testing.T) {
	w := newWorker(&Agent{log: slog.New(slog.NewTextHandler(io.Discard, nil))}, "it")
	w.fail("load the instance", io.ErrUnexpectedEOF)
	if !w.mu.TryLock() {
		t.Fatal("the worker is locked")
	}
	w.mu.Unlock()
	if i, _ := w.health(); i.Error != "load the instance: unexpected EOF" {
		t.Errorf("%q", i.Error)
	}
}

// Series of an instance join by their labels: the interface is that of report.Identity.
func TestInstanceHealthNamesTheInterfaceOfItsReports(t *testing.T) {
	for _, c := range []struct {
		each       string
		interfaces []string
	}{{"", nil}, {"", []string{"eth0"}}, {"", []string{"eth0", "eth1"}}, {"eth1", []string{"eth1"}}} {
		h := InstanceHealth{Each: c.each}
		for _, name := range c.interfaces {
			h.Interfaces = append(h.Interfaces, InterfaceHealth{Name: name})
		}
		if got, want := h.measured(), (report.Identity{Instance: "i", Each: c.each, Interfaces: c.interfaces}).Interface(); got != want {
			t.Errorf("%v: %q, want %q", c, got, want)
		}
	}
}
