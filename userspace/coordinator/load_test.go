package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/keys"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// loadConfig names the configuration of a coordinator that is a process of its own, so that what it takes is known.
const loadConfig = "XDPMON_LOAD_COORDINATOR"

func TestMain(m *testing.M) {
	if path := os.Getenv(loadConfig); path != "" {
		os.Exit(loaded(path))
	}
	testutil.Main(m)
}

// loaded is that coordinator. When it ends, it prints how much it has received.
func loaded(path string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := Run(ctx, Options{Path: path, Log: func(settings.Log) slog.Handler { return slog.NewTextHandler(os.Stderr, nil) }, Stdout: io.Discard,
		Started: func(a string) { fmt.Println(a) }})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(counter.received, counter.missed)
	return 0
}

// many receives messages and answers every twentieth.
type many struct {
	received, missed uint64
	outgoing         []algo.Outgoing
}

var counter many

func (m *many) Joined(string) {}
func (m *many) Left(string)   {}
func (m *many) Receive(s algo.Incoming) error {
	m.missed += s.Missed
	if m.received++; m.received%20 == 0 {
		m.outgoing = append(m.outgoing, algo.Outgoing{Host: s.Host, Data: s.Data[:16]})
	}
	return nil
}

func (m *many) Send(int64) (list []algo.Outgoing) {
	list, m.outgoing = m.outgoing, nil
	return list
}
func (*many) Report(report.Window) (algo.Result, error) { return algo.Result{}, nil }

type manyConfig struct{ sumsConfig }

func (manyConfig) Coordinate(algo.Env) (algo.Coordinator, error) { return &counter, nil }

func init() {
	d, err := algo.Lookup("sums")
	if err != nil {
		panic(err)
	}
	c := *d
	c.Name = "many"
	c.Config = fixed(manyConfig{})
	algo.Register(&c)
}

// load is agents, each of which sends rate messages a second, for a while.
type load struct {
	agents, rate int
	span         time.Duration
}

func loadAsked(t *testing.T) load {
	text := os.Getenv("XDPMON_LOAD")
	if text == "" {
		return load{25, 20, time.Second}
	}
	fields := strings.Split(text, "x")
	if len(fields) != 3 {
		t.Fatalf("XDPMON_LOAD=%s: AGENTSxRATExDURATION", text)
	}
	agents, err1 := strconv.Atoi(fields[0])
	rate, err2 := strconv.Atoi(fields[1])
	span, err3 := time.ParseDuration(fields[2])
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatalf("XDPMON_LOAD=%s: AGENTSxRATExDURATION", text)
	}
	return load{agents, rate, span}
}

// used is what a process has taken: CPU time, and memory now and at most, bytes.
type used struct {
	cpu       time.Duration
	now, most int64
}

func usedBy(t *testing.T, pid int) (u used) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, n := range []int{11, 12} { // user and system time
		ticks, err := strconv.ParseInt(fields[n], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		u.cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			u.now = kb << 10
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			u.most = kb << 10
		}
	}
	return u
}

// Many agents with separate certificates send much, over the real links: everything is received, once. The cost is printed.
func TestLoad(t *testing.T) {
	o := loadAsked(t)
	s := newSite(t)
	s.hello = 0 // as agents do
	s.make(keys.Coordinator, "central")
	names := make([]string, o.agents)
	for n := range names {
		names[n] = fmt.Sprintf("h%d", n)
		s.make(keys.Agent, names[n])
	}
	f := s.files("central")
	path := filepath.Join(s.dir, "load.yaml")
	text := fmt.Sprintf(`measurements: [{name: m, window: 10s, algorithms: {many: }}]
bus: {listen: "127.0.0.1:0", keys: {ca: %s, certificate: %s, key: %s, revoked: %s}}
data: %s
socket: %s
`, f.CA, f.Certificate, f.Key, f.Revoked, filepath.Join(s.dir, "data"), filepath.Join(s.dir, "socket"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = append(os.Environ(), loadConfig+"="+path), os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var address string
	if _, err := fmt.Fscan(out, &address); err != nil {
		t.Fatal(err)
	}
	idle, own := usedBy(t, cmd.Process.Pid), usedBy(t, os.Getpid())

	began := time.Now()
	agents := make([]*agentUnderTest, o.agents)
	var opening sync.WaitGroup
	for n, name := range names {
		opening.Go(func() { agents[n] = s.agentAs(name, time.Millisecond, "tls://"+address) })
	}
	opening.Wait()
	eventually(t, "connecting", func() bool {
		for _, a := range agents {
			if !a.Clock().Known {
				return false
			}
		}
		return true
	})
	connected := time.Since(began)
	open, ownOpen := usedBy(t, cmd.Process.Pid), usedBy(t, os.Getpid())

	var published atomic.Uint64
	var speaking sync.WaitGroup
	end := time.Now().Add(o.span)
	for _, a := range agents {
		speaking.Go(func() {
			time.Sleep(time.Duration(rand.Int64N(int64(time.Second))) / time.Duration(o.rate))
			tick := time.NewTicker(time.Second / time.Duration(o.rate))
			defer tick.Stop()
			message := make([]byte, 200)
			for time.Now().Before(end) {
				a.Publish("m", "many", hostclock.Now(), 0, message)
				published.Add(1)
				<-tick.C
			}
		})
	}
	speaking.Wait()
	waiting := 0
	for _, a := range agents {
		waiting = max(waiting, a.Health().Waiting)
	}
	eventually(t, "receiving everything", func() bool {
		for _, a := range agents {
			if a.Health().Waiting > 0 {
				return false
			}
		}
		return true
	})
	busy, ownBusy := usedBy(t, cmd.Process.Pid), usedBy(t, os.Getpid())
	health := healthOf(t, filepath.Join(s.dir, "socket"))
	lost, again, batches := uint64(0), uint64(0), uint64(0)
	for _, a := range agents {
		h := a.Health()
		lost, again, batches = lost+h.Lost+h.Messages, again+h.Again, batches+h.Sent
	}
	for _, k := range health.Agents {
		lost += k.Lost + k.Missed + k.Own
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var received, missed uint64
	if _, err := fmt.Fscan(out, &received, &missed); err != nil {
		t.Fatal(err)
	}
	n, seconds := float64(o.agents), o.span.Seconds()
	t.Logf("%d agents connected in %v; %d messages in %d batches in %v (%.1f a second and agent), %d received, %d missed, %d lost, %d batches sent again, %d refused; at the end %d batches of an agent waited at most",
		o.agents, connected.Round(time.Millisecond), published.Load(), batches, o.span, float64(batches)/n/seconds, received, missed, lost, again, sumOf(health.Refused), waiting)
	t.Logf("coordinator: %.2f cores, %.1f us a message, %.0f us a second and agent; memory %.1f MB at rest, %.1f with agents, %.1f at most: %.0f kB an agent",
		(busy.cpu-open.cpu).Seconds()/seconds, float64((busy.cpu-open.cpu).Microseconds())/float64(received), float64((busy.cpu-open.cpu).Microseconds())/n/seconds,
		float64(idle.now)/1e6, float64(open.now)/1e6, float64(busy.most)/1e6, float64(busy.now-idle.now)/1e3/n)
	t.Logf("agents: %.2f cores, %.1f us a message; %.0f kB each", (ownBusy.cpu-ownOpen.cpu).Seconds()/seconds,
		float64((ownBusy.cpu-ownOpen.cpu).Microseconds())/float64(received), float64(ownBusy.now-own.now)/1e3/n)
	if received != published.Load() || missed+lost != 0 || sumOf(health.Refused) != 0 || len(health.Agents) != o.agents {
		t.Errorf("%d of %d messages were received, %d missed, %d lost, refused %v, %d agents", received, published.Load(), missed, lost, health.Refused, len(health.Agents))
	}
}

func sumOf(counts map[string]uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func healthOf(t *testing.T, socket string) (h Health) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	answer, err := client.Get("http://coordinator/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return h
}
