package operator

import (
	"bufio"
	"bytes"
	"context"
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// running is an `xdpmon attach` in host A's namespace whose programs are attached.
type running struct {
	cmd       *exec.Cmd
	complaint lockedBuffer
	args      []string

	mu    sync.Mutex
	lines []string      // of standard output
	ended chan struct{} // standard output was closed
	once  sync.Once
}

// lockedBuffer is written by the process while the test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start attaches to A's interface and returns when the first line is there.
func start(t *testing.T, net *netns.Topology, args ...string) *running {
	t.Helper()
	r := &running{ended: make(chan struct{}), args: append([]string{"attach", net.A.Interface, "--output", "json"}, args...)}
	r.cmd = exec.Command(binary, r.args...)
	r.cmd.Stderr = &r.complaint
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := net.A.Start(r.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.kill)
	go func() {
		defer close(r.ended)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			r.mu.Lock()
			r.lines = append(r.lines, scan.Text())
			r.mu.Unlock()
		}
	}()
	r.await(t, "the first line", func() bool { return len(r.printed()) > 0 })
	return r
}

func (r *running) printed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines
}

// await waits for something that happens while the process runs.
func (r *running) await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if happened() {
			return
		}
		select {
		case <-r.ended:
			if happened() {
				return
			}
			t.Fatalf("xdpmon %s ended before %s: %s", strings.Join(r.args, " "), what, r.complaint.String())
		default:
		}
	}
	t.Fatalf("waited %v for %s; standard error %q", patience, what, r.complaint.String())
}

// awaitNotice waits for a message on standard error.
func (r *running) awaitNotice(t *testing.T, pattern string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	r.await(t, "the message "+pattern, func() bool { return want.MatchString(r.complaint.String()) })
}

// stop sends a signal and returns the outcome.
func (r *running) stop(t *testing.T, signal syscall.Signal) outcome {
	t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	return r.wait(t)
}

func (r *running) wait(t *testing.T) outcome {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		t.Fatalf("xdpmon %s does not end; standard error %q", strings.Join(r.args, " "), r.complaint.String())
	}
	var err error
	r.once.Do(func() { err = r.cmd.Wait() })
	out := bytes.NewBufferString(strings.Join(r.printed(), "\n"))
	return finish(t, err, out, bytes.NewBufferString(r.complaint.String()), r.args)
}

// kill is for kill -9, and for processes of failed tests.
func (r *running) kill() {
	_ = r.cmd.Process.Kill()
	<-r.ended
	r.once.Do(func() { _ = r.cmd.Wait() })
}

// inside runs the binary in A's namespace to its end.
func inside(t *testing.T, net *netns.Topology, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := net.A.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	return finish(t, err, &out, &complaint, args)
}

// clean fails when a program or a qdisc is left on A's interface. The kernel removes links a moment after their process.
func clean(t *testing.T, net *netns.Topology) {
	t.Helper()
	var left string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if left = onInterface(t, net); left == "" {
			return
		}
	}
	t.Errorf("left on %s: %s", net.A.Interface, left)
}

func onInterface(t *testing.T, net *netns.Topology) string {
	t.Helper()
	o := inside(t, net, "status")
	if o.code != done {
		t.Fatalf("status: %s", o.err)
	}
	left := ""
	if strings.Contains(o.out, net.A.Interface) {
		left = o.out
	}
	handle, err := net.A.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	link, err := handle.LinkByName(net.A.Interface)
	if err != nil {
		t.Fatal(err)
	}
	if xdp := link.Attrs().Xdp; xdp != nil && xdp.Attached {
		left += " an XDP program"
	}
	return left
}

// shakeHands connects from A to B, n times, one after the other.
func shakeHands(t *testing.T, net *netns.Topology, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	address := netip.AddrPortFrom(net.B.IPv4, 443).String()
	listener, err := net.B.Listen(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			_ = conn.Close()
		}
	}()
	for range n {
		conn, err := net.A.Dial(ctx, "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Read(make([]byte, 1)) // until the other side has closed
		_ = conn.Close()
	}
}

// matched sums the fridge's samples over all windows, and reports whether the last one was marked.
func matched(t *testing.T, o outcome) (sum float64, last bool) {
	t.Helper()
	for _, window := range windows(t, o.out) {
		if window["algorithm"] != "fridge" {
			continue
		}
		sum += number(t, window, "report", "matched")
		about, _ := window["window"].(map[string]any)
		last = about["last"] == true
	}
	return sum, last
}
