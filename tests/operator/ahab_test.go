package operator

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
)

// flood sends datagrams from B to A without a pause, and counts those that arrive.
type flood struct {
	arrived chan int // bytes, each
	stop    chan struct{}
}

func startFlood(t *testing.T, network *netns.Topology) *flood {
	t.Helper()
	to, err := network.A.ListenPacket(t.Context(), "udp", net.JoinHostPort(network.A.IPv4.String(), "5001"))
	if err != nil {
		t.Fatal(err)
	}
	from, err := network.B.Dial(t.Context(), "udp", to.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	f := &flood{make(chan int, 1<<20), make(chan struct{})}
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			select {
			case <-f.stop:
				return
			default:
				_, _ = from.Write(make([]byte, 1200))
				time.Sleep(200 * time.Microsecond) // 48 Mbit/s at most
			}
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		for b := make([]byte, 2000); ; {
			if _, _, err := to.ReadFrom(b); err != nil {
				return
			}
			select {
			case f.arrived <- 1:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		close(f.stop)
		to.Close()
		from.Close()
		<-done
		<-done
	})
	return f
}

// report is ahab's part of a line.
type ahabLine struct {
	Report struct {
		Dropped   uint64 `json:"segments_dropped"`
		Would     uint64 `json:"would_drop"`
		Unlimited uint64
		Slices    []struct{ Slice string }
	}
}

func lastAhab(t *testing.T, r *running) (last ahabLine) {
	t.Helper()
	lines := r.printed()
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	return last
}

// Slices from a file, with a process that is changed, paused, continued and killed while traffic flows.
func TestAhabFollowsItsFile(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	path := filepath.Join(t.TempDir(), "slices.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("capacity: 100kbit\nslices: [{name: all, user: source}")
	o := inside(t, network, "attach", network.A.Interface, "--algo", "ahab", "--set", "ahab.config="+path, "--duration", "1s")
	o.want(t, usage, `slices\.yaml:1:\d+: no YAML`) // refused where it is wrong, and nothing is attached
	clean(t, network)
	write("capacity: 100kbit\nslices: [{name: all, user: source}]")
	f := startFlood(t, network)
	run := start(t, network, "--algo", "ahab", "--set", "ahab.config="+path, "--set", "ahab.lease=1s", "--window", "100ms")
	limited := func() bool { return lastAhab(t, run).Report.Dropped > 0 }
	run.await(t, "drops", limited)

	write("capacity: 1kbit\nslices: [{name: all}]")
	run.awaitNotice(t, `the slices stay as they were: .*slices\.yaml:1:11: capacity "1kbit"`)
	run.await(t, "drops after a file that is refused", limited)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	run.awaitNotice(t, "the slices stay as they were: read slices: .*no such file")
	run.await(t, "drops after a file is removed", limited)
	write(fmt.Sprintf("capacity: 200kbit\nslices: [{name: named, match: {interfaces: [%s]}}, {name: rest}]", network.A.Interface))
	run.await(t, "the new slices", func() bool {
		s := lastAhab(t, run).Report.Slices
		return len(s) == 2 && (s[0].Slice == "named" || s[1].Slice == "named") && limited()
	})

	if err := run.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	open(t, f)
	if err := run.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	run.await(t, "drops after a pause", func() bool { return lastAhab(t, run).Report.Unlimited == 0 && limited() })
	run.kill()
	open(t, f)
	clean(t, network)
}

// open waits until everything passes: more arrives within a second than the limit would let through in ten.
func open(t *testing.T, f *flood) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for len(f.arrived) > 0 {
			<-f.arrived
		}
		for second := time.Now().Add(time.Second); time.Now().Before(second); time.Sleep(10 * time.Millisecond) {
			if len(f.arrived) > 10*200_000/8/1200 {
				return
			}
		}
	}
	t.Fatal("limits stay without the process that renews them")
}

// arrivals are datagrams that arrive within some time; 5,000 a second are sent at most.
func (f *flood) arrivals(d time.Duration) int {
	for len(f.arrived) > 0 {
		<-f.arrived
	}
	time.Sleep(d)
	return len(f.arrived)
}

// holds fails if more arrives in 200 ms than ten times 100 kbit/s; without a limit it is hundreds of times.
func (f *flood) holds(t *testing.T, when string) {
	t.Helper()
	if n := f.arrivals(200 * time.Millisecond); n > 21 {
		t.Errorf("%d datagrams in 200 ms %s, 2 are the limit", n, when)
	}
}

// A killed run that was pinned leaves its programs: limits end with the lease, or stay for the time that was set at the start, or until detach.
func TestAhabKilledWhilePinned(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	network := netnstest.New(t, netns.Options{})
	f := startFlood(t, network)
	begin := func(set ...string) *running {
		args := []string{"--algo", "ahab", "--pin", "operator", "--window", "100ms", "--set", "ahab.capacity=100kbit", "--set", "ahab.user=source"}
		for _, s := range set {
			args = append(args, "--set", "ahab."+s)
		}
		run := start(t, network, args...)
		run.await(t, "drops", func() bool { return lastAhab(t, run).Report.Dropped > 0 })
		return run
	}
	detach := func() {
		t.Helper()
		if onInterface(t, network) == "" {
			t.Fatal("nothing is attached: --pin did not keep it")
		}
		inside(t, network, "detach", network.A.Interface).want(t, done, "")
		clean(t, network)
	}
	begin("fail=open").kill()
	open(t, f)
	detach()

	run := begin("fail=hold", "hold=2s")
	run.awaitNotice(t, `limits stay for 2s when this process stops or, pinned, is killed`)
	run.kill()
	f.holds(t, "after a killed process that was to hold limits for two")
	open(t, f)
	detach()

	begin("fail=hold", "hold=1h").kill()
	f.holds(t, "after a killed process that was to hold limits for an hour")
	detach()
	open(t, f)
}

// A dry run reports what would be dropped and drops nothing; removing an interface while limits are enforced ends only its attachment.
func TestAhabDryRunAndInterfaceRemoved(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	f := startFlood(t, network)
	args := []string{"--algo", "ahab", "--window", "100ms", "--set", "ahab.capacity=100kbit", "--set", "ahab.user=source"}
	dry := start(t, network, append(args, "--set", "ahab.dry-run=true")...)
	dry.await(t, "what would be dropped", func() bool { return lastAhab(t, dry).Report.Would > 0 && lastAhab(t, dry).Report.Dropped == 0 })
	open(t, f)
	dry.stop(t, syscall.SIGINT).want(t, done, "")

	run := start(t, network, args...)
	run.await(t, "drops", func() bool { return lastAhab(t, run).Report.Dropped > 0 })
	deleteLink(t, network)
	run.awaitNotice(t, network.A.Interface+".*(gone|disappeared|went away|vanished|no longer|deleted|removed)")
	run.stop(t, syscall.SIGINT).want(t, done, network.A.Interface)
}
