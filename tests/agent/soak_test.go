package agent

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
)

// needSoak: these take minutes, and are run by `make agent-soak`.
func needSoak(t *testing.T) {
	t.Helper()
	if os.Getenv("XDPMON_AGENT_SOAK") == "" {
		t.Skip("make agent-soak runs it")
	}
}

func TestSoakStorm(t *testing.T)    { needSoak(t); storm(t, 100, frames) }
func TestSoakUpgrades(t *testing.T) { needSoak(t); upgrades(t, 20, frames) }
func TestSoakKilled(t *testing.T)   { needSoak(t); killed(t, 100) }

// attachedAt are the times at which the agent logged that it attached to interfaces.
func attachedAt(t *testing.T, log string) map[string]time.Time {
	t.Helper()
	at := map[string]time.Time{}
	for _, m := range regexp.MustCompile(`(?m)^time=(\S+) .*msg="(\S+): attached at`).FindAllStringSubmatch(log, -1) {
		when, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			t.Fatal(err)
		}
		at[m[2]] = when
	}
	return at
}

// 200 interfaces appear within ten seconds, each is attached to within two, and all are released when they go.
func TestSoakMany(t *testing.T) {
	needSoak(t)
	network := quietNetwork(t)
	handle := netlinkOf(t, network.A)
	p := newPlace(t, network.A)
	p.write("instances:\n  - name: many\n    interfaces: [\"xdpmon-d*\"]\n    algorithms: {fridge: {}, precision: {}}\n")
	r := p.start(binary)
	const many = 200
	made := map[string]time.Time{}
	var links []netlink.Link
	began := time.Now()
	for i := range many {
		time.Sleep(time.Until(began.Add(time.Duration(i) * 10 * time.Second / many)))
		name := fmt.Sprintf("xdpmon-d%d", i)
		made[name] = time.Now()
		links = append(links, addVeth(t, handle, name, fmt.Sprintf("xdpmon-e%d", i)))
	}
	within := time.Since(began)
	eventually(t, "attaching to all", func() bool { return len(r.attached("many")) == many })
	var late []time.Duration
	for name, when := range attachedAt(t, r.log.String()) {
		late = append(late, when.Sub(made[name]))
	}
	slices.Sort(late)
	for _, l := range links {
		if err := handle.LinkDel(l); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "releasing all", func() bool { return len(r.attached("many")) == 0 })
	if h := r.health(); h.Status != "ok" || len(late) != many {
		t.Errorf("%d attached, %+v", len(late), h)
	}
	r.stop()
	t.Logf("%d interfaces within %v: attached after %v in the median, %v at most", many, within.Round(time.Millisecond), late[many/2], late[many-1])
}

const userHZ = 100

// ticks is the processor time of a process so far, in ticks of userHZ.
func ticks(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	user, _ := strconv.ParseFloat(fields[12], 64)
	system, _ := strconv.ParseFloat(fields[13], 64)
	return user + system
}

// inMemory is a line of a process' status, in MiB.
func inMemory(t *testing.T, pid int, field string) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	kilobytes, _ := strconv.ParseFloat(string(regexp.MustCompile(field + `:\s+(\d+)`).FindSubmatch(status)[1]), 64)
	return kilobytes / 1024
}

// atRest is what a process took of a core, and what it has in memory.
func atRest(t *testing.T, pid int, d time.Duration) (share, resident float64) {
	t.Helper()
	before := ticks(t, pid)
	time.Sleep(d)
	return (ticks(t, pid) - before) / userHZ / d.Seconds(), inMemory(t, pid, "VmRSS")
}

// taken is the processor time of a process so far, and the most that it has had in memory.
func taken(t *testing.T, pid int) (cpu time.Duration, peak float64) {
	t.Helper()
	return time.Duration(ticks(t, pid)) * time.Second / userHZ, inMemory(t, pid, "VmHWM")
}

// Every algorithm on ten idle interfaces, with windows of ten seconds: cost of the start, and at rest.
func TestSoakRest(t *testing.T) {
	needSoak(t)
	network := quietNetwork(t)
	handle := netlinkOf(t, network.A)
	p := newPlace(t, network.A)
	text := "instances:\n  - name: rest\n    interfaces: [\"xdpmon-d*\"]\n    algorithms:\n"
	for _, name := range algo.Names() {
		text += "      " + name + ": {" + map[string]string{"beaucoup": `queries: "scan: count distinct dport by src > 100 in 10s"`}[name] + "}\n"
	}
	p.write(text)
	for i := range 10 {
		addVeth(t, handle, fmt.Sprintf("xdpmon-d%d", i), fmt.Sprintf("xdpmon-e%d", i))
	}
	r := p.start(binary)
	eventually(t, "attaching", func() bool { return len(r.attached("rest")) == 10 })
	cpu, peak := taken(t, r.cmd.Process.Pid)
	time.Sleep(15 * time.Second)
	share, resident := atRest(t, r.cmd.Process.Pid, 60*time.Second)
	r.stop()
	t.Logf("%d algorithms: a start takes %v and %.1f MiB at most; at rest %.2f %% of a core and %.1f MiB", len(algo.Names()), cpu, peak, 100*share, resident)
	if cpu > 2*time.Second || peak > 100 {
		t.Errorf("a start of %v and %.1f MiB, at most 2 s and 100 MiB", cpu, peak)
	}
	if share > 0.01 || resident > 64 {
		t.Errorf("at rest %.2f %% of a core and %.1f MiB resident, at most 1 %% and 64 MiB", 100*share, resident)
	}
}
