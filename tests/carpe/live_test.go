package carpe

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/userspace/agent"
	coordinated "github.com/xdpmon/xdpmon/userspace/coordinator"
)

// What passes the hosts: a flood of twice the threshold in a window, half of the threshold at each host, and a light flow of less than a third of it in all.
const (
	threshold = 8000
	floodRate = 2000 // packets a second and host
	lightRate = 300
)

// disturbance is one site under a flood, from when that is named the first time.
type disturbance struct {
	*site
	flood, light string
	began        time.Time
	sent         func() []uint64
	times        [][2]time.Time // of what was done, each until it was healed
	kills        int            // of agents
	longest      time.Duration  // from when something was given back until all agents were answered again
}

func disturb(t *testing.T, coordinators int) *disturbance {
	t.Helper()
	d := &disturbance{site: newSite(t, coordinators), light: "10.77.0.9"}
	var floods []netnstest.Flood
	for _, network := range d.networks {
		d.flood = network.B.IPv4.String()
		d.address(network.B.Interface, d.netlink(network.B))
		floods = append(floods, netnstest.Datagrams(t, network, network.B.IPv4, floodRate), netnstest.Datagrams(t, network, netip.MustParseAddr(d.light), lightRate))
	}
	for _, a := range d.answers() {
		if a.Report.Elephants != 0 {
			t.Errorf("an elephant before the flood: %+v", a)
		}
	}
	d.began = time.Now()
	d.sent = begin(floods)
	first := d.named(d.began)
	t.Logf("the flood is named by the window that ends %v after its first packet, %v after it: %+v", first.end().Sub(d.began), time.Since(d.began), first.Report.Top)
	return d
}

// address assigns the light flow's address, too, to the far host.
func (d *disturbance) address(name string, handle *netlink.Handle) {
	d.t.Helper()
	link, err := handle.LinkByName(name)
	if err == nil {
		err = handle.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(d.light).To4(), Mask: net.CIDRMask(24, 32)}})
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// named waits until one of the two windows that end next names the flood, and returns it.
func (d *disturbance) named(since time.Time) (first answer) {
	d.t.Helper()
	found, over := false, false
	d.await("two windows", func() bool {
		for _, a := range d.answers() {
			delay := a.end().Sub(since)
			if over = over || delay > 2*liveWindow; delay > 0 && delay <= 2*liveWindow && len(a.Report.Top) > 0 {
				first, found = a, true
				return true
			}
		}
		return over
	})
	if !found {
		d.t.Errorf("no window within %v of %v names the flood", 2*liveWindow, since)
	}
	return first
}

// during runs a disturbance, waits until all agents have an answer since its end, and then for the flood to be named.
func (d *disturbance) during(what string, do func()) {
	d.t.Helper()
	began := time.Now()
	do()
	back := time.Now()
	d.await("agents are answered", func() bool {
		for _, a := range d.agents {
			asked := time.Now()
			var h agent.Health
			if !a.ask(&h) || h.Bus == nil || !h.Bus.Connected || h.Bus.Answered < 0 || asked.Add(-time.Duration(h.Bus.Answered*1e9)).Before(back) {
				return false
			}
		}
		return true
	})
	healed := time.Now()
	d.times = append(d.times, [2]time.Time{began, healed})
	d.longest = max(d.longest, healed.Sub(back))
	d.named(healed)
	d.t.Logf("%s: it took %v, all agents were answered %v later, and the flood was named %v later", what, back.Sub(began).Round(time.Millisecond),
		healed.Sub(back).Round(time.Millisecond), time.Since(healed).Round(time.Millisecond))
}

// leader is the coordinator that merges windows.
func (d *disturbance) leader() (leads int) {
	d.t.Helper()
	d.await("a leader", func() bool {
		for n, c := range d.coordinators {
			var h coordinated.Health
			if c.cmd != nil && c.ask(&h) && h.Leading {
				leads = n
				return true
			}
		}
		return false
	})
	return leads
}

func (d *disturbance) coordinatorKilled(away time.Duration) {
	d.during(fmt.Sprintf("coordinator killed and started again %v later", away), func() {
		d.coordinators[0].kill()
		time.Sleep(away)
		d.coordinators[0].again()
	})
}

func (d *disturbance) agentKilled(n int) {
	d.during("agent killed and started again", func() {
		d.agents[n].kill()
		d.agents[n].again()
	})
	d.kills++
}

func (d *disturbance) oneOfThreeKilled(away time.Duration) {
	killed := d.leader()
	d.during("leader of three killed", func() {
		d.coordinators[killed].kill()
		d.leader()
	})
	time.Sleep(away)
	d.during("it is back", func() { d.rejoin(killed) })
	killed = (d.leader() + 1) % len(d.coordinators)
	d.during("another one of three killed", d.coordinators[killed].kill)
	time.Sleep(away)
	d.during("it is back", func() { d.rejoin(killed) })
}

// rejoin starts a coordinator of a cluster again.
func (d *disturbance) rejoin(n int) {
	d.t.Helper()
	d.coordinators[n].again()
	d.await("it has joined", func() bool {
		var h coordinated.Health
		return d.coordinators[n].ask(&h) && h.Plan != 0
	})
}

// cutOff disconnects some hosts from the network.
func (d *disturbance) cutOff(cut time.Duration, some ...int) {
	d.during(fmt.Sprintf("%d hosts cut off for %v", len(some), cut), func() {
		for _, n := range some {
			d.cut(n, true)
		}
		time.Sleep(cut)
		for _, n := range some {
			d.cut(n, false)
		}
	})
}

// calm ends the traffic, and waits until all of it is answered.
func (d *disturbance) calm() {
	d.t.Helper()
	sent := d.sent()
	quiet := time.Now()
	d.await("everything is answered", func() bool {
		all := d.answers()
		last := all[len(all)-1]
		return last.Window.Start > quiet.UnixNano() && last.Hosts.Merged == hosts && last.Report.Reports == 0
	})
	d.t.Logf("the hosts have sent %d packets", sent)
	for n := 0; n < len(sent); n += 2 {
		if per := float64(sent[n]) * liveWindow.Seconds() / quiet.Sub(d.began).Seconds(); per >= threshold {
			d.t.Errorf("one host alone sends %.0f packets in a window: the flood is not light there", per)
		}
	}
}

// judge compares every answer with the hosts' own files, and returns in how many windows nothing was lost.
func (d *disturbance) judge() (whole int) {
	d.t.Helper()
	var reported, arrived, late, messages, ring, missing, lateWindows uint64
	for _, a := range d.agents {
		for _, l := range d.lines(a.name) {
			reported += l.Report.Reported
			ring += l.Lost["reports"]
		}
	}
	windows, named, inside, short, complete := 0, 0, 0, 0, false
	for _, a := range d.answers() {
		windows++
		complete = complete || a.Hosts.Merged+a.Hosts.Missing == hosts // one that has never arrived is not missed
		arrived += a.Report.Reports
		late, messages, missing, lateWindows = late+a.Lost["reports_late"], messages+a.Lost["messages"], missing+a.Lost["hosts_missing"], lateWindows+a.Lost["windows_late"]
		for _, e := range a.Report.Top {
			if named++; e.Dst != d.flood {
				d.t.Errorf("%s is no elephant: %+v", e.Dst, a)
			}
		}
		if a.Report.Elephants != len(a.Report.Top) {
			d.t.Errorf("%d elephants: %+v", a.Report.Elephants, a)
		}
		if a.Hosts.Merged < hosts {
			if complete {
				short++
			}
		} else if d.undisturbed(a) && len(a.Report.Top) == 1 {
			whole++
			if e := a.Report.Top[0]; e.High >= float64(a.Report.Total)-2*lightRate*hosts*liveWindow.Seconds() && e.Low <= float64(a.Report.Total) {
				inside++
			} else {
				d.t.Logf("%.0f packets in [%.0f, %.0f], and all were %d", e.Packets, e.Low, e.High, a.Report.Total)
			}
		}
	}
	for _, c := range d.coordinators {
		for line := range strings.Lines(c.output()) {
			if _, who, ok := strings.Cut(line, "an elephant: "); ok && !strings.HasPrefix(who, "["+d.flood+"]") {
				d.t.Errorf("log of %s: %s", c.name, line)
			}
		}
	}
	d.t.Logf("%d windows, %d of them without a host, name the flood %d times; %d of %d whole ones have the truth within their bounds", windows, short, named, inside, whole)
	d.t.Logf("hosts sent %d reports: %d arrived in time, %d were counted as late, %d were lost in hosts' rings; %d messages were lost; hosts were missing %d times, %d windows were late",
		reported, arrived, late, ring, messages, missing, lateWindows)
	if short > 0 && missing+lateWindows == 0 {
		d.t.Errorf("%d windows lack a host, and none is reported as missing or late", short)
	}
	if misses := whole - inside; misses > 2+whole/8 { // a twentieth may miss
		d.t.Errorf("%d of %d windows have the truth within their bounds", inside, whole)
	}
	known := arrived + late + ring
	room := uint64(d.kills) * killedWindow // what an agent wrote of its last window, or sent of it, is not known
	if messages > 0 {
		d.t.Errorf("%d messages are reported as lost: agents had space for all", messages)
	}
	if known > reported+room || reported > known+room {
		d.t.Errorf("hosts sent %d reports, and %d arrived or are counted as lost, within %d", reported, known, room)
	}
	return whole
}

// killedWindow is how many reports a killed agent may have sent and not written, or written and not sent: those of a window and of the start of the next
// one's, in bundles of threshold/20/4 observers, each of which is reported with probability 1/4, and the finer ones of the beginning.
const killedWindow = 60

// undisturbed: nothing was lost in it.
func (d *disturbance) undisturbed(a answer) bool {
	for what, n := range a.Lost {
		if n > 0 && what != "raced" { // then the flow was sampled again
			return false
		}
	}
	for _, t := range d.times {
		if t[0].UnixNano() < a.Window.End && a.Window.Start < t[1].UnixNano() {
			return false
		}
	}
	return a.Hosts.Cut+a.Hosts.Unmeasured == 0
}

// Four hosts, each in a namespace with the real agent, and the real coordinator over mutual TLS. A flood to one address passes all of them, at
// each of them below the threshold: the coordinator names it within two windows, and nothing else. Then the coordinator and an agent are killed
// meanwhile: it is named again, and losses are counted.
func TestFloodOverFourHosts(t *testing.T) {
	d := disturb(t, 1)
	d.coordinatorKilled(0)
	d.agentKilled(1)
	d.calm()
	d.judge()
}

// The same repeatedly, each disturbance with hosts of its own, so that all reports are accounted for except those lost with a killed agent.
func TestFloodDisturbed(t *testing.T) {
	if os.Getenv("XDPMON_FLEET_RUNS") == "" {
		t.Skip("make fleet")
	}
	const cut, rounds = 30 * time.Second, 3
	for _, c := range []struct {
		what         string
		coordinators int
		do           func(d *disturbance, round int)
	}{
		{"coordinator killed", 1, func(d *disturbance, round int) {
			d.coordinatorKilled(time.Duration(round) * liveWindow)
			time.Sleep(3 * liveWindow)
		}},
		{"agent killed", 1, func(d *disturbance, round int) { d.agentKilled(round); time.Sleep(3 * liveWindow) }},
		{"network cut", 1, func(d *disturbance, round int) {
			d.cutOff(cut, round, round+1)
			d.cutOff(cut, 0, 1, 2, 3)
		}},
		{"one of three killed", 3, func(d *disturbance, _ int) { d.oneOfThreeKilled(3 * liveWindow) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := disturb(t, c.coordinators)
			for round := range rounds {
				c.do(d, round)
			}
			d.calm()
			if d.judge() == 0 {
				t.Error("no window was whole")
			}
		})
	}
}
