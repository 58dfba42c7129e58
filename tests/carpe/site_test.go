package carpe

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
)

// hosts of a site, each with an agent.
const hosts = 4

// site is coordinators and agents in namespaces, as an operator would start them: real processes, mutual TLS.
type site struct {
	t            *testing.T
	dir          string
	hub          *netns.Host // where coordinators are
	networks     [hosts]*netns.Topology
	coordinators []*process
	agents       [hosts]*process
}

// newSite starts coordinators, one or a cluster of three, and agents that measure what leaves their hosts for others.
func newSite(t *testing.T, coordinators int) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), hub: netnstest.New(t, netns.Options{}).A}
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", s.dir+"/", "github.com/xdpmon/xdpmon/cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.keys("init")
	for n := range s.networks {
		s.networks[n] = netnstest.New(t, netns.Options{})
		s.wire(n)
	}
	for n := range coordinators {
		s.coordinators = append(s.coordinators, s.coordinator(n, coordinators))
	}
	for n := range s.agents {
		s.agents[n] = s.agent(n)
	}
	s.await("all hosts in a window", func() bool {
		all := s.answers()
		return len(all) > 0 && all[len(all)-1].Hosts.Merged == hosts
	})
	return s
}

func (s *site) coordinator(n, of int) *process {
	s.t.Helper()
	name, port, cluster := fmt.Sprintf("hub%d", n), 4222+n, ""
	if of > 1 {
		cluster = fmt.Sprintf(", cluster: {name: %s, listen: \"127.0.0.1:%d\", routes: [\"127.0.0.1:%d\", \"127.0.0.1:%d\"]}", name, port+100, 4322+(n+1)%of, 4322+(n+2)%of)
	}
	s.keys("coordinator", name, "--host", "127.0.0.1", "--host", "10.88.0.1", "--host", "10.88.1.1", "--host", "10.88.2.1", "--host", "10.88.3.1")
	return s.start(s.hub, name, "xdpmon-coordinator", "--config", s.write(name+".yaml", fmt.Sprintf(`measurements:
  - name: edge
    window: %v
    algorithms: {carpe: {key: dst, family: "4", group: dst/24, threshold: %d, epsilon: 0.05, s: 1/8}}
bus: {listen: "0.0.0.0:%d", keys: %s%s}
data: %s
socket: %s
outputs: [{json: %s}]
`, liveWindow, threshold, port, s.at(name), cluster, s.file(name), s.file(name+".sock"), s.file(name+".jsonl"))))
}

func (s *site) agent(n int) *process {
	s.t.Helper()
	name := fmt.Sprintf("host%d", n)
	s.keys("agent", name)
	var servers []string
	for c := range s.coordinators {
		servers = append(servers, fmt.Sprintf("%q", fmt.Sprintf("tls://10.88.%d.1:%d", n, 4222+c)))
	}
	return s.start(s.networks[n].A, name, "xdpmon", "agent", "--config", s.write(name+".yaml", fmt.Sprintf(`bus: {servers: [%s], name: %s, keys: %s, plan: %s}
socket: %s
outputs: [{json: %s}]
instances: [{name: edge, interfaces: [%s], hook: tc, direction: egress, shared: true}]
`, strings.Join(servers, ", "), name, s.at(name), s.file(name+".plan"), s.file(name+".sock"), s.file(name+".jsonl"), s.networks[n].A.Interface)))
}

// at is the folder of a name's keys.
func (s *site) at(name string) string {
	return fmt.Sprintf("{ca: %[1]s/keys/ca.crt, certificate: %[1]s/keys/%[2]s.crt, key: %[1]s/keys/%[2]s.key}", s.dir, name)
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
	cmd := exec.Command(s.file("xdpmon-coordinator"), append([]string{"keys"}, args...)...)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// process is a command in a namespace; it is interrupted when the test ends.
type process struct {
	*site
	name string
	host *netns.Host
	args []string
	log  *os.File
	cmd  *exec.Cmd // nil: it was killed
}

func (s *site) start(host *netns.Host, name string, args ...string) *process {
	s.t.Helper()
	log, err := os.Create(s.file(name + ".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	p := &process{site: s, name: name, host: host, args: args, log: log}
	p.again()
	s.t.Cleanup(func() {
		if p.cmd != nil {
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			if err := p.cmd.Wait(); err != nil {
				s.t.Errorf("%s: %v", name, err)
			}
		}
		log.Close()
		if s.t.Failed() {
			s.t.Logf("%s:\n%.6000s", name, p.output())
		}
	})
	return p
}

// again starts it, on the same files as before.
func (p *process) again() {
	p.t.Helper()
	p.cmd = exec.Command(p.file(p.args[0]), p.args[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = p.dir, p.log, p.log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.host.Start(p.cmd); err != nil {
		p.t.Fatal(err)
	}
}

// kill kills it without notice.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // "signal: killed"
	p.cmd = nil
}

func (p *process) output() string {
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		p.t.Error(err)
	}
	return string(text)
}

// ask reads /healthz; false if there is no answer.
func (p *process) ask(into any) bool {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.file(p.name+".sock"))
	}}}
	answer, err := client.Get("http://localhost/healthz")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(into) == nil
}

// wire leads from the hub to a host, beside the interface that is measured.
func (s *site) wire(n int) {
	s.t.Helper()
	hub, far := s.netlink(s.hub), s.netlink(s.networks[n].A)
	name := fmt.Sprintf("xdpmon-w%d", n)
	if err := hub.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "xdpmon-w", PeerNamespace: netlink.NsFd(s.networks[n].A.Fd())}); err != nil {
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

func (s *site) netlink(host *netns.Host) *netlink.Handle {
	s.t.Helper()
	h, err := host.Netlink()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(h.Close)
	return h
}

// cut interrupts the path from a host to the coordinators, or restores it.
func (s *site) cut(n int, away bool) {
	s.t.Helper()
	hub := s.netlink(s.hub)
	link, err := hub.LinkByName(fmt.Sprintf("xdpmon-w%d", n))
	if err == nil && away {
		err = hub.LinkSetDown(link)
	} else if err == nil {
		err = hub.LinkSetUp(link)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// answer is what the tests read of a window, of a coordinator or an agent.
type answer struct {
	Algorithm string
	Window    struct {
		Start int64
		End   int64
	}
	Hosts struct {
		Merged, Missing int
		Skewed          int `json:"windows_skewed"`
		Cut             int `json:"windows_cut"`
		Unmeasured      int `json:"windows_unmeasured"`
	}
	Lost   map[string]uint64
	Report struct {
		Total     uint64
		Reported  uint64 `json:"bundles_reported"`
		Reports   uint64
		Elephants int
		Top       []elephant `json:"elephants_top"`
	}
}

type elephant struct {
	Dst       string
	Packets   float64
	Low       float64 `json:"packets_low"`
	High      float64 `json:"packets_high"`
	Reports   int
	Observers int
}

// end of the window, on the coordinator's clock.
func (a answer) end() time.Time { return time.Unix(0, a.Window.End) }

// answers are the coordinators', in the order of windows. One that was given twice, as its coordinator was killed before it took note of that, is
// there once: what was counted since the state with which the next one started is in the later one.
func (s *site) answers() (all []answer) {
	s.t.Helper()
	at := map[int64]int{}
	for _, c := range s.coordinators {
		for _, a := range s.lines(c.name) {
			if a.Hosts.Merged == 0 {
				continue
			}
			if n, twice := at[a.Window.Start]; twice {
				all[n] = a
				continue
			}
			at[a.Window.Start] = len(all)
			all = append(all, a)
		}
	}
	return all
}

// lines are all windows that a process has written; one that a kill has cut is left out.
func (s *site) lines(name string) (all []answer) {
	s.t.Helper()
	f, err := os.Open(s.file(name + ".jsonl"))
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) == nil && a.Algorithm == "carpe" {
			all = append(all, a)
		}
	}
	return all
}

const liveWindow = 2 * time.Second

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

// begin starts floods until stop is called, which returns how much each has sent.
func begin(floods []netnstest.Flood) (stop func() []uint64) {
	var end atomic.Bool
	sent := make([]chan uint64, len(floods))
	for n, f := range floods {
		sent[n] = make(chan uint64, 1)
		go func() { sent[n] <- f.Send(&end) }()
	}
	return func() (all []uint64) {
		end.Store(true)
		for _, ch := range sent {
			all = append(all, <-ch)
		}
		return all
	}
}
