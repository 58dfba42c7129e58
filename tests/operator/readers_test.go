package operator

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
)

var windowsDone = regexp.MustCompile(`(?m)^xdpmon_windows_total\{.*\} (\d+)$`)

// TestReadersDisturbNothing: neither a pipe without a reader, nor clients that do not read the responses, delay a single
// window; the windows that the pipe's reader missed are reported.
func TestReadersDisturbNothing(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := exec.Command(binary, "attach", network.A.Interface, "--algo", "fridge", "--window", "100ms", "--listen", "127.0.0.1:0", "--output", "json")
	r := &running{cmd: cmd, ended: make(chan struct{}), args: cmd.Args[1:]}
	cmd.Stdout, cmd.Stderr = writer, &r.complaint
	if err := network.A.Start(cmd); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	var waited error
	go func() { defer close(r.ended); r.once.Do(func() { waited = cmd.Wait() }) }()
	t.Cleanup(r.kill)
	r.awaitNotice(t, `http://127\.0\.0\.1:\d+/metrics`)
	url := regexp.MustCompile(`http://[^ \n]+/metrics`).FindString(r.complaint.String())
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")
	for range 20 {
		conn, err := network.A.Dial(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() { // until its end the server's socket is full, and then ours
			for range 500 {
				if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
					return
				}
			}
		}()
	}
	client := clientInside(t, network)
	r.await(t, "twenty windows", func() bool {
		code, text := ask(t, client, url)
		m := windowsDone.FindStringSubmatch(text)
		if code != 200 || m == nil {
			return false
		}
		n, err := strconv.Atoi(m[1])
		return err == nil && n >= 20
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	for {
		if _, err := reader.Read(buf); err != nil {
			break
		}
	}
	r.wait(t)
	if waited != nil {
		t.Errorf("it ended with %v: %s", waited, r.complaint.String())
	}
	clean(t, network)
}

// TestAStoppedProcessMarksItsWindow: a process that was stopped marks its window as longer than configured.
func TestAStoppedProcessMarksItsWindow(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	run := start(t, network, "--algo", "fridge", "--window", "200ms")
	if err := run.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if err := run.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	run.await(t, "a stretched window", func() bool {
		for _, w := range windows(t, strings.Join(run.printed(), "\n")) {
			about := w["window"].(map[string]any)
			if about["stretched"] == true && number(t, w, "window", "end")-number(t, w, "window", "start") > 0.9e9 {
				return true
			}
		}
		return false
	})
	run.stop(t, syscall.SIGTERM).want(t, done, "")
	clean(t, network)
}
