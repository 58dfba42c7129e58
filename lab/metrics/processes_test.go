package metrics

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/lab/metrics/prometheus"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// patience is for what happens soon, on however busy a machine.
const patience = 3 * time.Minute

// hasTraces reports whether the shared captures are there; without them the models have to do.
func hasTraces(t *testing.T) bool {
	t.Helper()
	dir := os.Getenv("XDPMON_TRACES")
	if dir == "" {
		dir = filepath.Join(testutil.Root(t), "..", "shared", "traces")
	}
	_, err := os.Stat(dir)
	return err == nil
}

// selectorsOf are the metrics that an expression asks for.
func selectorsOf(expr parser.Expr) (names []string) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			names = append(names, v.Name)
		}
		return nil
	})
	return names
}

// processes are an agent and a coordinator, as they are shipped, in a namespace of their own. Prometheus' own scraper asks them once a second; the
// returned time is when all of it has been asked three times.
func (w *world) processes(t *testing.T) (end time.Time) {
	t.Helper()
	network := netnstest.New(t, netns.Options{})
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("coordinator.yaml", fmt.Sprintf(`measurements: [{name: edge, window: 1s, wait: 1s, algorithms: {precision: {}}}]
listen: 127.0.0.1:9401
data: %s
socket: %s
store: {path: %s}
`, file("data"), file("coordinator.sock"), file("answers.db")))
	write("agent.yaml", fmt.Sprintf(`listen: 127.0.0.1:9400
kernel_drops: true
socket: %s
store: {path: %s}
outputs: [{json: %s}]
bus: {servers: ["nats://127.0.0.1:4222"], name: host1, plan: %s}
instances:
  - {name: tenants, interfaces: [%[5]s], each: true, hook: tc, window: 1s, algorithms: {fridge: {}, beaucoup: {}}}
  - {name: edge, interfaces: [%[5]s], direction: ingress, hook: tc, shared: true}
`, file("agent.sock"), file("windows.db"), file("windows.jsonl"), file("plan"), network.A.Interface))
	bin := built(t)
	for _, program := range [][]string{{"xdpmon-coordinator", "--config", file("coordinator.yaml")}, {"xdpmon", "agent", "--config", file("agent.yaml")}} {
		start(t, network.A, bin, dir, program)
	}
	dial := func(ctx context.Context, kind, address string) (net.Conn, error) {
		return network.A.Dial(ctx, kind, address)
	}
	if err := w.Scrape(scrapeConfig(t), dial, prometheus.Job{Name: "xdpmon", Address: "127.0.0.1:9400"}, prometheus.Job{Name: "xdpmon-coordinator", Address: "127.0.0.1:9401"}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		connect(t, network)
		end = time.Now()
		if measured(w.ask(t, `count_over_time(xdpmon_coordinator_leading[2m]) > 2`, end), w.ask(t, `xdpmon_windows_total{algorithm="fridge",instance="127.0.0.1:9400"} > 2`, end),
			w.ask(t, `xdpmon_windows_total{algorithm="precision",instance="127.0.0.1:9401"} > 2`, end)) {
			return end
		}
	}
	t.Fatalf("agent and coordinator have not measured within %v", patience)
	return end
}

func measured[V interface{ ~[]E }, E any](answers ...V) bool {
	for _, v := range answers {
		if len(v) == 0 {
			return false
		}
	}
	return true
}

// built is the folder of both programs: XDPMON_BIN, or one into which they are built.
func built(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("XDPMON_BIN"); dir != "" {
		return dir
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "./cmd/xdpmon", "./cmd/xdpmon-coordinator")
	build.Dir = testutil.Root(t) // the product's own module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return dir
}

// start starts a program of bin in the host's namespace.
func start(t *testing.T, host *netns.Host, bin, dir string, program []string) {
	t.Helper()
	path := filepath.Join(bin, program[0])
	logged := filepath.Join(dir, program[0]+".log")
	log, err := os.Create(logged)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, program[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := host.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s ended with %v", program[0], err)
		}
		log.Close()
		if text, err := os.ReadFile(logged); err == nil && t.Failed() {
			t.Logf("log of %s:\n%s", program[0], text)
		}
	})
}

// connect opens connections from the host, thirty in a quarter of a second.
func connect(t *testing.T, network *netns.Topology) {
	t.Helper()
	l, err := network.B.Listen(context.Background(), "tcp4", network.B.IPv4.String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	unheard, err := network.B.Dial(context.Background(), "udp4", network.A.IPv4.String()+":9")
	if err != nil {
		t.Fatal(err)
	}
	defer unheard.Close()
	if _, err := io.WriteString(unheard, "nobody listens"); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "answer")
			c.Close()
		}
	}()
	for range 30 {
		c, err := network.A.Dial(context.Background(), "tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, c)
		c.Close()
		time.Sleep(8 * time.Millisecond)
	}
}

// scrapeConfig is the one of deploy/demo, by the second, with the targets that the test names.
func scrapeConfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testutil.Root(t), "deploy/demo/prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("scrape_interval: 5s", "scrape_interval: 1s", "rule_files: [../prometheus/rules.yaml]", "").Replace(string(text))
}
