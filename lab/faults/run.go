package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/status"
)

// Handshakes that every run has to count.
const Handshakes = 10

// Outcome is how a run with a fault ended.
type Outcome struct {
	Fault    Fault
	Injected bool // otherwise the process made fewer than K such calls
	Kind     Kind
	Problem  string        // of Unclean
	Took     time.Duration // to the end: from the fault where that ended it, from SIGINT where it continued
	Code     int           // -1: killed by a signal
	Stderr   string
}

// Kind is how a run ended.
type Kind int

// The kinds of ends. Everything but Unclean leaves nothing attached.
const (
	Unclean     Kind = iota
	Failed           // exit code 1 or 3 and a message
	Reported         // it continued, counted everything, and reported what is missing
	Unaffected       // it continued, counted everything, and reported word for word what it reports without a fault
	GoGaveUp         // the Go runtime ended the process; nothing that a Go program does can prevent that
	NotInjected      // there were fewer than K calls
)

func (k Kind) String() string {
	return [...]string{"not clean", "failed with a message", "continued and reported it", "made no difference", "Go runtime gave up", "not reached"}[k]
}

// Message is the last line on standard error, or what the Go runtime died of.
func (o Outcome) Message() string {
	lines := strings.Split(strings.TrimSpace(o.Stderr), "\n")
	for _, line := range lines {
		if isRuntime(line) {
			return line
		}
	}
	return lines[len(lines)-1]
}

// isRuntime recognises the last words of the Go runtime, which are no panic of the program.
func isRuntime(line string) bool {
	return strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "runtime: ")
}

// Scenario is a command line of xdpmon that measures on an interface.
type Scenario struct {
	Binary string
	Args   []string // behind "attach IFACE"
	Pinned bool     // with a pin of its own for every run, which a detach takes away
	// Patience is how long a run may take to begin and to end.
	Patience time.Duration
}

// Arguments are those of the main sweep: everything that a run may open.
var Arguments = []string{"--algo", "fridge", "--window", "1h", "--output", "json", "--listen", "127.0.0.1:9400"}

// Generic are those of a sweep of the other hook and of a chain.
var Generic = []string{"--algo", "precision,fridge,reorder", "--hook", "xdp", "--mode", "generic", "--window", "1h", "--output", "json"}

var pins atomic.Int64

// Usual is the standard error of a run without a fault.
func (s Scenario) Usual() (string, error) {
	o, err := s.Run(Fault{}, "")
	if err == nil && o.Kind != NotInjected {
		err = fmt.Errorf("a run without a fault: %v: %s: %s", o.Kind, o.Problem, o.Stderr)
	}
	return o.Stderr, err
}

// Run starts the scenario with a fault in a network of its own, sends traffic when it measures, ends it with SIGINT, and
// returns how it ended. usual is the standard error of a run without a fault.
func (s Scenario) Run(fault Fault, usual string) (Outcome, error) {
	o := Outcome{Fault: fault}
	network, err := netns.New(netns.Options{})
	if err != nil {
		return o, err
	}
	defer network.Close()
	args := append([]string{"attach", network.A.Interface}, s.Args...)
	pin := fmt.Sprintf("xdpmon-faults-%d-%d", os.Getpid(), pins.Add(1))
	if s.Pinned {
		args = append(args, "--pin", pin)
	}
	windows, err := s.watch(&o, network, args)
	if err != nil {
		return o, err
	}
	if s.Pinned {
		if err := s.unpin(&o, network, pin); err != nil {
			return o, err
		}
	}
	left, err := attached(network)
	if err != nil {
		return o, err
	}
	switch {
	case left != "":
		o.Problem += " left attached: " + left
	case o.Problem == "":
		o.Kind, o.Problem = o.judge(windows, usual)
	}
	return o, nil
}

// unpin takes away what a run has left on purpose, as an operator would. A run that succeeded has left something; one that failed
// may have.
func (s Scenario) unpin(o *Outcome, network *netns.Topology, pin string) error {
	o.Stderr = strings.ReplaceAll(o.Stderr, pin, "PIN")
	left, err := onInterface(network)
	if err != nil {
		return err
	}
	folder := "/sys/fs/bpf/xdpmon/" + pin
	_, missing := os.Stat(folder)
	switch {
	case o.Code != 0 && left == "" && missing != nil:
		return nil
	case o.Code == 0 && (left == "" || missing != nil):
		o.Problem += fmt.Sprintf(" the pin is gone: attached %q, folder: %v;", left, missing)
	}
	detach := exec.Command(s.Binary, "detach", pin)
	var output bytes.Buffer
	detach.Stdout, detach.Stderr = &output, &output
	if err := network.A.Start(detach); err != nil {
		return err
	}
	if err := detach.Wait(); err != nil {
		o.Problem += fmt.Sprintf(" detach: %v: %s;", err, strings.TrimSpace(output.String()))
	}
	if _, err := os.Stat(folder); err == nil {
		o.Problem += " the pin's folder is still there;"
	}
	return nil
}

// watch is the run itself; it returns what was printed.
func (s Scenario) watch(o *Outcome, network *netns.Topology, args []string) (windows []string, err error) {
	cmd := exec.Command(s.Binary, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	injector, err := Start(cmd, o.Fault, network.A.Start)
	if err != nil {
		return nil, err
	}
	// What does not end is killed; that closes its output and ends everything here.
	var hung atomic.Bool
	patience := time.AfterFunc(s.Patience, func() { hung.Store(true); _ = cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	var interrupted time.Time
	if _, err := lines.ReadString('\n'); err == nil {
		if err := shakeHands(network); err != nil {
			return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
		}
		interrupted = time.Now()
		patience.Reset(s.Patience)
		_ = cmd.Process.Signal(syscall.SIGINT)
	}
	rest, _ := io.ReadAll(lines)
	ended := cmd.Wait()
	now := time.Now()
	patience.Stop()
	injected, err := injector.Wait()
	if err != nil {
		return nil, err
	}
	o.Injected, o.Code, o.Stderr = injected != nil, cmd.ProcessState.ExitCode(), withoutProgress(complaint.String())
	o.Took = now.Sub(interrupted)
	if injected != nil && (interrupted.IsZero() || injected.After(interrupted)) {
		o.Took = now.Sub(*injected)
	}
	if hung.Load() {
		o.Problem = fmt.Sprintf("it did not end within %v;", s.Patience)
	}
	var exit *exec.ExitError
	if ended != nil && !errors.As(ended, &exit) {
		return nil, ended
	}
	return strings.Split(strings.TrimSpace(string(rest)), "\n"), nil
}

// withoutProgress leaves out the progress of a slow start: that is no difference between runs.
func withoutProgress(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.HasPrefix(line, "xdpmon: proving and loading ") })
	return strings.Join(lines, "\n")
}

// judge returns how a run ended that has left nothing attached.
func (o *Outcome) judge(windows []string, usual string) (Kind, string) {
	switch {
	case slices.ContainsFunc(strings.Split(o.Stderr, "\n"), isRuntime) && !strings.Contains(o.Stderr, "panic: "):
		return GoGaveUp, ""
	case o.Code < 0:
		return Unclean, "it was killed by a signal"
	case strings.Contains(o.Stderr, "goroutine "):
		return Unclean, "it crashed"
	case (o.Code == 1 || o.Code == 3) && strings.Contains(o.Stderr, "xdpmon: "):
		return Failed, ""
	case o.Code != 0:
		return Unclean, fmt.Sprintf("exit code %d", o.Code)
	}
	if n, last := matched(windows); n != Handshakes || !last {
		return Unclean, fmt.Sprintf("it continued and counted %v of %d handshakes, last window marked: %v", n, Handshakes, last)
	}
	switch {
	case !o.Injected:
		return NotInjected, ""
	case o.Stderr == usual:
		return Unaffected, ""
	case len(strings.Split(o.Stderr, "\n")) > len(strings.Split(usual, "\n")):
		return Reported, ""
	}
	return Unclean, fmt.Sprintf("it continued and reported less, or something else: %q instead of %q", o.Stderr, usual)
}

// matched sums the fridge's handshakes, and returns whether the last window was marked.
func matched(lines []string) (sum float64, last bool) {
	for _, line := range lines {
		var window struct {
			Algorithm string
			Window    struct{ Last bool }
			Report    struct{ Matched float64 }
		}
		if json.Unmarshal([]byte(line), &window) == nil && window.Algorithm == "fridge" {
			sum += window.Report.Matched
			last = window.Window.Last
		}
	}
	return sum, last
}

// shakeHands connects from A to B, one connection after the other.
func shakeHands(network *netns.Topology) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	address := netip.AddrPortFrom(network.B.IPv4, 443).String()
	listener, err := network.B.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			_ = conn.Close()
		}
	})
	defer serving.Wait()
	defer listener.Close()
	for range Handshakes {
		conn, err := network.A.Dial(ctx, "tcp", address)
		if err != nil {
			return err
		}
		_, _ = conn.Read(make([]byte, 1)) // until the other side has closed
		_ = conn.Close()
	}
	return nil
}

// attached names what is left on the interface. The kernel takes links off a moment after their process.
func attached(network *netns.Topology) (left string, err error) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if left, err = onInterface(network); err != nil || left == "" {
			return "", err
		}
	}
	return left, nil
}

// onInterface names what is there now.
func onInterface(network *netns.Topology) (there string, err error) {
	err = network.A.Run(func() error {
		all, err := status.List()
		for _, a := range all {
			if a.Interface == network.A.Interface {
				there += a.Occupant.String() + " "
			}
		}
		return err
	})
	return there, err
}

// productRoot is the folder of the product's module, above the working directory; lab/ is a module of its own.
func productRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".ci", "go")); err == nil {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.New("find repository: run this inside of it")
}

// Build builds the command as it is shipped and returns its path, in a folder that the caller removes.
func Build(dir string) (string, error) {
	path := dir + "/xdpmon"
	build := exec.Command("go", "build", "-o", path, "github.com/xdpmon/xdpmon/cmd/xdpmon")
	root, err := productRoot()
	if err != nil {
		return "", err
	}
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build xdpmon: %w: %s", err, out)
	}
	return path, nil
}
