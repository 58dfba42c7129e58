package carpe

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
)

// site is a coordinator and its agents, each in a namespace, as an operator would start them.
type site struct {
	t   *testing.T
	dir string
	hub *netns.Host // where the coordinator is
	bin string
}

func (s *site) file(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(s.file(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.file(name)
}

func (s *site) keys(args ...string) {
	s.t.Helper()
	cmd := exec.Command(s.bin, append([]string{"keys"}, args...)...)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// start a command in a namespace; it is interrupted when the test ends.
func (s *site) start(host *netns.Host, name string, args ...string) {
	s.t.Helper()
	log, err := os.Create(s.file(name + ".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(s.bin, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	if err := host.Start(cmd); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
		log.Close()
		if s.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			s.t.Logf("%s:\n%.6000s", name, text)
		}
	})
}

// wire leads from the hub to a host, beside the interface that is measured.
func (s *site) wire(host *netns.Host, n int) {
	s.t.Helper()
	hub, err := s.hub.Netlink()
	if err != nil {
		s.t.Fatal(err)
	}
	defer hub.Close()
	far, err := host.Netlink()
	if err != nil {
		s.t.Fatal(err)
	}
	defer far.Close()
	name := fmt.Sprintf("xdpmon-w%d", n)
	if err := hub.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "xdpmon-w", PeerNamespace: netlink.NsFd(host.Fd())}); err != nil {
		s.t.Fatal(err)
	}
	for _, end := range []struct {
		handle *netlink.Handle
		name   string
		own    byte
	}{{hub, name, 1}, {far, "xdpmon-w", 2}} {
		link, err := end.handle.LinkByName(end.name)
		if err == nil {
			err = end.handle.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 88, byte(n), end.own).To4(), Mask: net.CIDRMask(30, 32)}})
		}
		if err == nil {
			err = end.handle.LinkSetUp(link)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// answer is what the test reads of a window of the coordinator.
type answer struct {
	Window struct {
		End string `json:"end_time"`
	}
	Hosts  struct{ Merged int }
	Report struct {
		Elephants int
		Top       []struct {
			Dst       string
			Packets   float64
			Reports   int
			Observers int
		} `json:"elephants_top"`
	}
}

func (s *site) answers() (all []answer) {
	s.t.Helper()
	f, err := os.Open(s.file("answers.jsonl"))
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) == nil && a.Hosts.Merged > 0 {
			all = append(all, a)
		}
	}
	return all
}

const liveWindow = 2 * time.Second

// Four hosts, each in a namespace with the real agent, and the real coordinator over mutual TLS. A flood to one address passes all of them, at
// each of them below the threshold: the coordinator names it within two windows, and nobody else.
func TestFloodOverFourHosts(t *testing.T) {
	const hosts, rate, threshold = 4, 1500, 8000 // packets a second and host: 3,000 in a window, 12,000 together
	s := &site{t: t, dir: t.TempDir(), hub: netnstest.New(t, netns.Options{}).A}
	s.bin = s.file("xdpmon")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", s.bin, "github.com/xdpmon/xdpmon/cmd/xdpmon").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.keys("init")
	s.keys("coordinator", "hub", "--host", "10.88.0.1", "--host", "10.88.1.1", "--host", "10.88.2.1", "--host", "10.88.3.1")
	at := func(name string) string {
		return fmt.Sprintf("{ca: %[1]s/keys/ca.crt, certificate: %[1]s/keys/%[2]s.crt, key: %[1]s/keys/%[2]s.key}", s.dir, name)
	}
	var floods []netnstest.Flood
	var networks []*netns.Topology
	for n := range hosts {
		networks = append(networks, netnstest.New(t, netns.Options{}))
		floods = append(floods, netnstest.Datagrams(t, networks[n], rate))
		s.wire(networks[n].A, n)
	}
	s.start(s.hub, "coordinator", "coordinator", "--config", s.write("coordinator.yaml", fmt.Sprintf(`measurements:
  - name: edge
    window: %v
    algorithms: {carpe: {key: dst, family: "4", group: dst/24, threshold: %d, epsilon: 0.05, s: 1/8}}
bus: {listen: "0.0.0.0:4222", keys: %s}
data: %s
socket: %s
outputs: [{json: %s}]
`, liveWindow, threshold, at("hub"), s.file("data"), s.file("hub.sock"), s.file("answers.jsonl"))))
	for n, network := range networks {
		name := fmt.Sprintf("host%d", n)
		s.keys("agent", name)
		s.start(network.A, name, "agent", "--config", s.write(name+".yaml", fmt.Sprintf(`bus: {servers: ["tls://10.88.%d.1:4222"], name: %s, keys: %s, plan: %s}
socket: %s
instances: [{name: edge, interfaces: [%s], hook: tc, direction: egress, shared: true}]
`, n, name, at(name), s.file(name+".plan"), s.file(name+".sock"), network.A.Interface)))
	}
	s.await("all hosts in a window", func() bool {
		all := s.answers()
		return len(all) > 0 && all[len(all)-1].Hosts.Merged == hosts
	})
	quiet := s.answers()
	for _, a := range quiet {
		if a.Report.Elephants != 0 {
			t.Errorf("an elephant before the flood: %+v", a)
		}
	}
	began := time.Now()
	var stop atomic.Bool
	sent := make(chan uint64, hosts)
	for _, f := range floods {
		go func() { sent <- f.Send(&stop) }()
	}
	var declared answer
	s.await("an elephant", func() bool {
		for _, a := range s.answers() {
			if a.Report.Elephants > 0 {
				declared = a
				return true
			}
		}
		return false
	})
	took := time.Since(began)
	stop.Store(true)
	total, most := uint64(0), uint64(0)
	for range floods {
		n := <-sent
		total, most = total+n, max(most, n)
	}
	end, err := time.Parse(time.RFC3339Nano, declared.Window.End)
	if err != nil {
		t.Fatal(err)
	}
	top := declared.Report.Top
	t.Logf("declared at the end of a window %v behind the first packet, answered %v behind it: %+v; %d packets in all, %d of one host in %v", end.Sub(began), took, top, total, most, took)
	if behind := end.Sub(began); behind > 2*liveWindow {
		t.Errorf("the window that names the flood ends %v behind its first packet, want two windows", behind)
	}
	if declared.Report.Elephants != 1 || len(top) != 1 || top[0].Dst != networks[0].B.IPv4.String() {
		t.Errorf("declared are %+v", declared.Report)
	}
	if perWindow := float64(most) * liveWindow.Seconds() / took.Seconds(); perWindow >= threshold {
		t.Errorf("one host alone sends %.0f packets in a window: the flood is not light there", perWindow)
	}
}

// patience is for what happens soon, on however busy a machine.
const patience = 2 * time.Minute

func (s *site) await(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	s.t.Fatalf("%s did not happen within %v", what, patience)
}
