package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// hook is a way to attach, and the kernel's way that it must result in.
type hook struct {
	name string
	args []string
	via  []string
}

// hooks are all that an operator can ask for. TCX links exist from 6.6 on; below, TC falls back to clsact.
func hooks() []hook {
	return []hook{
		{"xdp native", []string{"--hook", "xdp", "--mode", "native"}, []string{tc(), "xdp"}},
		{"xdp generic", []string{"--hook", "xdp", "--mode", "generic"}, []string{tc(), "xdp"}},
		{"tc", []string{"--hook", "tc"}, []string{tc()}},
	}
}

func tc() string {
	if older(6, 6) {
		return "clsact"
	}
	return "tcx"
}

// ways are those in which algorithms must be attached: conquest watches the interface's queue as well (conquest.source=auto).
func (h hook) ways(names []string) []string {
	if !slices.Contains(names, "conquest") {
		return h.via
	}
	return slices.Sorted(slices.Values(append([]string{"tp_btf"}, h.via...)))
}

const handshakes = 12

// live attaches, makes real handshakes, ends on SIGINT, and looks for what is left.
func live(h hook, names ...string) (detail string, err error) {
	before := programs()
	net, err := netns.New(netns.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, net.Close()) }()
	run, err := start(net, append([]string{"--algo", strings.Join(names, ",")}, h.args...)...)
	if err != nil {
		return "", err
	}
	if err := sameWays(run.via, h.ways(names)); err != nil {
		return "", errors.Join(err, run.end(unix.SIGINT))
	}
	err = shakeHands(net, handshakes)
	if err := errors.Join(err, run.end(unix.SIGINT)); err != nil {
		return "", err
	}
	if detail, err = run.counted(len(names)); err != nil {
		return "", err
	}
	return "via " + strings.Join(run.via, " and ") + ": " + detail, nothingLeft(net, before)
}

func sameWays(got, want []string) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("attached via %s, want %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
	return nil
}

// attached is a running `xdpmon attach`.
type attached struct {
	cmd       *exec.Cmd
	out       *bufio.Reader
	complaint bytes.Buffer
	via       []string // sorted, each once
	windows   []map[string]any
}

// start returns when the programs are attached: then the first line is there.
func start(net *netns.Topology, args ...string) (*attached, error) {
	run := &attached{cmd: exec.Command(binary, append([]string{"attach", net.A.Interface, "--output", "json"}, args...)...)}
	run.cmd.Stderr = &run.complaint
	pipe, err := run.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := net.A.Start(run.cmd); err != nil {
		return nil, fmt.Errorf("start xdpmon: %w", err)
	}
	run.out = bufio.NewReader(pipe)
	line, err := run.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(run.cmd.Wait(), errors.New(shorten(run.complaint.String()+verifierLog())))
	}
	run.via, err = waysOf(line)
	return run, err
}

func waysOf(line string) ([]string, error) {
	var first struct {
		Run struct {
			Attached []struct{ Via string }
		}
	}
	if err := json.Unmarshal([]byte(line), &first); err != nil {
		return nil, fmt.Errorf("read %q: %w", line, err)
	}
	var via []string
	for _, one := range first.Run.Attached {
		via = append(via, one.Via)
	}
	slices.Sort(via)
	return slices.Compact(via), nil
}

// end sends a signal and waits; what was printed until then are the windows.
func (r *attached) end(signal unix.Signal) error {
	if err := r.cmd.Process.Signal(signal); err != nil {
		return err
	}
	rest, err := io.ReadAll(r.out)
	if err != nil {
		return err
	}
	if err := r.cmd.Wait(); err != nil {
		return fmt.Errorf("xdpmon attach: %w: %s", err, shorten(r.complaint.String()))
	}
	r.windows, err = windowsOf("the run\n" + string(rest))
	return err
}

// counted checks that every algorithm saw the handshakes: SYN, SYN-ACK and ACK are three packets, whatever closes them.
func (r *attached) counted(algorithms int) (string, error) {
	seen := map[string]float64{}
	matched := 0.0
	for _, window := range r.windows {
		name, _ := window["algorithm"].(string)
		packets, _ := window["packets"].(map[string]any)
		n, _ := packets["seen"].(float64)
		seen[name] += n
		report, _ := window["report"].(map[string]any)
		if n, ok := report["matched"].(float64); ok && name == "fridge" {
			matched += n
		}
	}
	if len(seen) != algorithms {
		return "", fmt.Errorf("windows of %d algorithms, want %d", len(seen), algorithms)
	}
	for name, n := range seen {
		if n < 3*handshakes {
			return "", fmt.Errorf("%s saw %.0f packets of %d handshakes", name, n, handshakes)
		}
		if name == "fridge" && matched < handshakes {
			return "", fmt.Errorf("fridge matched %.0f of %d handshakes", matched, handshakes)
		}
	}
	return fmt.Sprintf("%d handshakes counted", handshakes), nil
}

// shakeHands connects from A to B, n times, one after the other.
func shakeHands(net *netns.Topology, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	address := netip.AddrPortFrom(net.B.IPv4, 443).String()
	listener, err := net.B.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	for range n {
		conn, err := net.A.Dial(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("shake hands: %w", err)
		}
		_, _ = conn.Read(make([]byte, 1)) // until the other side has closed
		_ = conn.Close()
	}
	return nil
}
