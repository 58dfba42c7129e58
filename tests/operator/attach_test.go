package operator

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
)

func TestNoSuchInterface(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	o := inside(t, network, "attach", "xdpmon-nobody", "--algo", "fridge")
	o.want(t, failed, "interface xdpmon-nobody: no such interface")
	o = inside(t, network, "detach", "xdpmon-nobody")
	o.want(t, failed, "nothing of xdpmon is attached")
	o = inside(t, network, "attach", network.A.Interface, "xdpmon-nobody", "--algo", "fridge")
	o.want(t, failed, "no such interface")
	clean(t, network) // none of the interfaces
}

// TestSignalEndsWithTheLastWindow: counts since the last window are shown, and nothing stays attached.
func TestSignalEndsWithTheLastWindow(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			network := netnstest.New(t, netns.Options{})
			run := start(t, network, "--algo", "fridge", "--window", "1h")
			shakeHands(t, network, 25)
			o := run.stop(t, signal)
			o.want(t, done, "")
			if sum, last := matched(t, o); sum < 25 || !last {
				t.Errorf("%.0f of 25 handshakes, last window marked: %v", sum, last)
			}
			clean(t, network)
		})
	}
}

func TestKillLeavesNothing(t *testing.T) {
	for _, hook := range []string{"tc", "xdp"} {
		t.Run(hook, func(t *testing.T) {
			network := netnstest.New(t, netns.Options{})
			run := start(t, network, "--algo", "fridge", "--hook", hook)
			if onInterface(t, network) == "" {
				t.Fatal("status does not see what is attached")
			}
			run.kill()
			clean(t, network)
		})
	}
}

// TestInterfaceRemoved: the run continues, reports the removal, and still has its measurements.
func TestInterfaceRemoved(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	run := start(t, network, "--algo", "fridge", "--window", "1h", "--listen", "127.0.0.1:9400")
	client := clientInside(t, network)
	if code, text := ask(t, client, "http://127.0.0.1:9400/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("healthz while attached: %d %q", code, text)
	}
	shakeHands(t, network, 10)
	deleteLink(t, network)
	run.awaitNotice(t, network.A.Interface+".*(gone|disappeared|went away|vanished|no longer|deleted|removed)")
	run.await(t, "healthz without an attachment", func() bool {
		code, text := ask(t, client, "http://127.0.0.1:9400/healthz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, network.A.Interface)
	})
	o := run.stop(t, syscall.SIGINT)
	o.want(t, done, network.A.Interface)
	if sum, _ := matched(t, o); sum < 10 {
		t.Errorf("%.0f of 10 handshakes are left of what was measured", sum)
	}
}

func deleteLink(t *testing.T, network *netns.Topology) {
	t.Helper()
	handle, err := network.A.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	if err := handle.LinkDel(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: network.A.Interface, Index: network.A.Index}}); err != nil {
		t.Fatal(err)
	}
}

// TestReaderHangsUp is `xdpmon attach ... | head -1`: the first window without a reader ends the run.
func TestReaderHangsUp(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "attach", network.A.Interface, "--algo", "fridge", "--window", "100ms")
	var complaint lockedBuffer
	cmd.Stdout, cmd.Stderr = writer, &complaint
	if err := network.A.Start(cmd); err != nil {
		t.Fatal(err)
	}
	r := &running{cmd: cmd, ended: make(chan struct{}), args: cmd.Args[1:]}
	writer.Close()
	if _, err := io.ReadFull(reader, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	reader.Close()
	var waited error
	go func() { defer close(r.ended); r.once.Do(func() { waited = cmd.Wait() }) }()
	t.Cleanup(r.kill)
	r.wait(t)
	if waited == nil || strings.Contains(complaint.String(), "goroutine ") || !strings.Contains(complaint.String(), "broken pipe") {
		t.Errorf("ended with %v and printed %q", waited, complaint.String())
	}
	clean(t, network)
}

// TestTwoRunsOnOneInterface: both count everything, and ending one does not end the other.
func TestTwoRunsOnOneInterface(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	first := start(t, network, "--algo", "fridge", "--hook", "tc", "--window", "1h")
	second := start(t, network, "--algo", "fridge", "--hook", "tc", "--window", "1h")
	shakeHands(t, network, 10)
	o := first.stop(t, syscall.SIGINT)
	o.want(t, done, "")
	shakeHands(t, network, 5)
	p := second.stop(t, syscall.SIGINT)
	p.want(t, done, "")
	if n, _ := matched(t, o); n < 10 {
		t.Errorf("the first run matched %.0f of 10 handshakes", n)
	}
	if n, _ := matched(t, p); n < 15 {
		t.Errorf("the second run matched %.0f of 15 handshakes", n)
	}
	clean(t, network)
}

// TestSecondXDPRunIsRefused: a driver has one XDP program, and the first one stays.
func TestSecondXDPRunIsRefused(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	first := start(t, network, "--algo", "fridge", "--hook", "xdp", "--direction", "ingress", "--window", "1h")
	o := inside(t, network, "attach", network.A.Interface, "--algo", "fridge", "--hook", "xdp", "--direction", "ingress")
	o.want(t, failed, network.A.Interface+".*xdpmon")
	shakeHands(t, network, 5)
	p := first.stop(t, syscall.SIGINT)
	p.want(t, done, "")
	seen := 0.0
	for _, window := range windows(t, p.out) {
		seen += number(t, window, "packets", "seen")
	}
	if seen < 10 { // of each handshake at least the answer and the end arrive here
		t.Errorf("the first run saw %.0f packets after the second was refused", seen)
	}
	clean(t, network)
}

func TestBusyPort(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	taken, err := network.A.Listen(context.Background(), "tcp", "127.0.0.1:9400")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	o := inside(t, network, "attach", network.A.Interface, "--algo", "fridge", "--listen", "127.0.0.1:9400")
	o.want(t, failed, "127.0.0.1:9400.*address already in use.*choose another port")
	clean(t, network)
}

// TestScrape reads the metrics of a run as Prometheus would, including counts, and again: a counter does not decrease.
func TestScrape(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	run := start(t, network, "--algo", "fridge", "--window", "100ms", "--listen", "127.0.0.1:0")
	run.awaitNotice(t, `http://127\.0\.0\.1:\d+/metrics`)
	url := regexp.MustCompile(`http://[^ \n]+/metrics`).FindString(run.complaint.String())
	shakeHands(t, network, 12)
	client := clientInside(t, network)
	counted := regexp.MustCompile(`(?m)^xdpmon_fridge_matched_responses_total\{algorithm="fridge",instance_name="` + network.A.Interface + `",interface="` + network.A.Interface + `"\} (1[2-9]|[2-9]\d)$`)
	run.await(t, "12 handshakes in the metrics", func() bool { return counted.MatchString(scrape(t, client, url)) })
	text := scrape(t, client, url)
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if !regexp.MustCompile(`^(# (HELP|TYPE) \w+ .+|\w+(\{.*\})? [-+0-9.eE]+|\w+(\{.*\})? [-+]?(Inf|NaN))$`).MatchString(line) {
			t.Errorf("not in the format of Prometheus: %q", line)
		}
	}
	run.stop(t, syscall.SIGTERM).want(t, done, "")
	clean(t, network)
}

// clientInside is a browser in A's namespace.
func clientInside(t *testing.T, network *netns.Topology) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, kind, address string) (net.Conn, error) {
		return network.A.Dial(ctx, kind, address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func ask(t *testing.T, client *http.Client, url string) (code int, text string) {
	t.Helper()
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func scrape(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	code, text := ask(t, client, url)
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", url, code, text)
	}
	return text
}
