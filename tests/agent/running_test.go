package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	health "github.com/xdpmon/xdpmon/userspace/agent"
)

// binary is built once; other builds of it are made by the tests that need them.
var binary string

func TestMain(m *testing.M) { os.Exit(withBinary(m.Run)) }

func withBinary(run func() int) int {
	dir, err := os.MkdirTemp("", "xdpmon-agent-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "xdpmon")
	if err := build(binary, "first"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// build makes a binary of a revision's name.
func build(path, revision string) error { return buildProgram("xdpmon", path, revision) }

func buildProgram(program, path, revision string) error {
	out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-X main.revision="+revision, "-o", path, "github.com/xdpmon/xdpmon/cmd/"+program).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return nil
}

// central is the second program, beside the first: made when a test first needs it.
var central = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "xdpmon-coordinator")
	return path, buildProgram("xdpmon-coordinator", path, "first")
})

func coordinatorBinary(t *testing.T) string {
	t.Helper()
	path, err := central()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// patience is the timeout of what happens soon, even on a busy machine: only failures take so long.
const patience = 2 * time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s did not happen within %v", what, patience)
}

// place is where an agent runs: a folder for its files, and a namespace.
type place struct {
	t      *testing.T
	dir    string
	host   *netns.Host
	notify *net.UnixConn
}

func newPlace(t *testing.T, host *netns.Host) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), host: host}
	var err error
	if p.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: p.file("notify"), Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.notify.Close() })
	return p
}

func (p *place) file(name string) string { return filepath.Join(p.dir, name) }

// write makes the configuration: rules, and the files of this place.
func (p *place) write(text string) {
	p.t.Helper()
	text = fmt.Sprintf("socket: %s\nstore: {path: %s}\noutputs: [{json: %s}]\n", p.file("socket"), p.file("store/windows.db"), p.file("windows.jsonl")) + text
	if err := os.WriteFile(p.file("agent.yaml"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// running is an agent.
type running struct {
	*place
	cmd *exec.Cmd
	log lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start starts an agent and waits until it is ready.
func (p *place) start(binary string) *running {
	p.t.Helper()
	return p.startAs(binary, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL})
}

func (p *place) startAs(binary string, how *syscall.SysProcAttr) *running {
	p.t.Helper()
	r := &running{place: p, cmd: exec.Command(binary, "agent", "--config", p.file("agent.yaml"))}
	r.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+p.file("notify"))
	r.cmd.Stderr = &r.log
	r.cmd.SysProcAttr = how
	if err := p.host.Start(r.cmd); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
		if p.t.Failed() {
			p.t.Logf("log of the agent:\n%s", r.log.String())
		}
	})
	r.await("READY=1")
	return r
}

// await reads the notifications to the service manager until one matches; it returns all that arrived.
func (r *running) await(what string) (lines []string) {
	r.t.Helper()
	buffer := make([]byte, 4096)
	for {
		if err := r.notify.SetReadDeadline(time.Now().Add(patience)); err != nil {
			r.t.Fatal(err)
		}
		n, err := r.notify.Read(buffer)
		if err != nil {
			r.t.Fatalf("wait for %s: %v\n%s", what, err, r.log.String())
		}
		for line := range strings.Lines(string(buffer[:n])) {
			lines = append(lines, strings.TrimSpace(line))
		}
		if strings.Contains(string(buffer[:n]), what) {
			return lines
		}
	}
}

// hangup makes the agent read its configuration and waits until that is carried out.
func (r *running) hangup() []string {
	r.t.Helper()
	r.signal(syscall.SIGHUP)
	return r.await("READY=1")
}

func (r *running) signal(s os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// stop ends the agent as a service manager does.
func (r *running) stop() {
	r.t.Helper()
	r.signal(syscall.SIGTERM)
	if err := r.cmd.Wait(); err != nil {
		r.t.Errorf("the agent ended with %v\n%s", err, r.log.String())
	}
}

func (r *running) kill() {
	r.t.Helper()
	r.signal(syscall.SIGKILL)
	_ = r.cmd.Wait() // "signal: killed"
}

// health asks the agent over its socket.
func (r *running) health() (h health.Health) {
	r.t.Helper()
	ask(r.t, r.file("socket"), &h)
	return h
}

// ask reads /healthz of an agent or a coordinator into an answer.
func ask(t *testing.T, socket string, into any) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	answer, err := client.Get("http://localhost/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// attached are the interfaces of an instance that are attached to.
func (r *running) attached(instance string) (names []string) {
	for _, i := range r.health().Instances {
		for _, l := range i.Interfaces {
			if i.Name == instance && l.Attached {
				names = append(names, l.Name)
			}
		}
	}
	return names
}

// line is what the tests read of a window.
type line struct {
	Algorithm, Interface string
	Window               struct {
		Start, End int64
		Number     int
		Cut, Last  bool
		Stretched  bool
		StartTime  string `json:"start_time"`
	}
	Packets struct{ Seen, Used uint64 }
}

// windows reads JSON lines; the last may be cut where a process was killed.
func windows(t *testing.T, text []byte) (list []line) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			continue
		}
		if l.Algorithm != "" {
			list = append(list, l)
		}
	}
	return list
}

func (p *place) windows() []line {
	p.t.Helper()
	text, err := os.ReadFile(p.file("windows.jsonl"))
	if err != nil {
		p.t.Fatal(err)
	}
	return windows(p.t, text)
}

// history asks with the verb, whether an agent runs or not.
func (p *place) history(args ...string) []line {
	p.t.Helper()
	cmd := exec.Command(binary, append([]string{"history", "--config", p.file("agent.yaml"), "--output", "json"}, args...)...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("history: %v: %s", err, complaint.String())
	}
	return windows(p.t, out.Bytes())
}

// seen adds up the packets of one algorithm's windows.
func seen(list []line, algorithm, instance string) (n uint64) {
	for _, l := range list {
		if l.Algorithm == algorithm && l.Interface == instance {
			n += l.Packets.Seen
		}
	}
	return n
}

// quietNetwork is two hosts that send nothing by themselves.
func quietNetwork(t *testing.T) *netns.Topology {
	t.Helper()
	return quietNetworkOf(t, netns.Options{})
}

func quietNetworkOf(t *testing.T, options netns.Options) *netns.Topology {
	t.Helper()
	network := netnstest.New(t, options)
	for _, host := range []*netns.Host{network.A, network.B} {
		err := host.Run(func() error {
			return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return network
}

// datagrams and frames are the traffic under which something happens: over the wire, or at the rate that `make agent-soak` asks for.
func datagrams(t *testing.T, network *netns.Topology) netnstest.Flood {
	return netnstest.Datagrams(t, network, network.B.IPv4, 50_000)
}

func frames(t *testing.T, network *netns.Topology) netnstest.Flood {
	return netnstest.Frames(t, network.A, 210_000)
}

// begin starts a flood; end stops it and returns the number of packets.
func begin(t *testing.T, flood netnstest.Flood) (end func() uint64) {
	t.Helper()
	var stop atomic.Bool
	sent, began := make(chan uint64), time.Now()
	go func() { sent <- flood.Send(&stop) }()
	return func() uint64 {
		stop.Store(true)
		n := <-sent
		t.Logf("%d packets, %.0f a second", n, float64(n)/time.Since(began).Seconds())
		return n
	}
}

// addVeth makes a pair in the host's namespace and brings the named end up.
func addVeth(t *testing.T, handle *netlink.Handle, name, peer string) netlink.Link {
	t.Helper()
	if err := handle.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: peer}); err != nil {
		t.Fatal(err)
	}
	l, err := handle.LinkByName(name)
	if err == nil {
		err = handle.LinkSetUp(l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func netlinkOf(t *testing.T, host *netns.Host) *netlink.Handle {
	t.Helper()
	handle, err := host.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(handle.Close)
	return handle
}
