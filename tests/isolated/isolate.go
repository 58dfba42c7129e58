// Package lab runs tests that attach programs in namespaces of their own, with a veth to attach to, and child processes to kill.
package lab

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/namespace"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// Tests that attach run in a process of their own, in a network and a mount namespace of their own: whatever they
// do, and however they end, nothing of it remains on this machine.

// Patience is the timeout of what happens soon, even on a busy machine: only failures take so long.
const Patience = time.Minute

const IsolatedEnv = "XDPMON_TEST_ISOLATED"

// Isolated returns true in the process that runs the test. In the outer one it runs that process and passes
// on how it ended.
func Isolated(t *testing.T) bool {
	t.Helper()
	testutil.NeedRoot(t)
	testutil.NeedTool(t, "ip")
	if os.Getenv(IsolatedEnv) == t.Name() {
		ownMounts(t)
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), IsolatedEnv+"="+t.Name())
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	out, err := cmd.CombinedOutput()
	report(t, string(out), err)
	return false
}

func report(t *testing.T, out string, err error) {
	t.Helper()
	switch {
	case err != nil:
		t.Fatalf("in its own namespaces: %v\n%s", err, out)
	case strings.Contains(out, "--- SKIP"):
		t.Skip(out)
	case !strings.Contains(out, "--- PASS: "+t.Name()):
		t.Fatalf("the test did not run in its own namespaces:\n%s", out)
	default:
		t.Log(out)
	}
}

// ownMounts gives the process its own /sys (which shows the network namespace of its mount) and /run (with named
// namespaces live).
func ownMounts(t *testing.T) {
	t.Helper()
	NoError(t, unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	NoError(t, unix.Mount("sysfs", "/sys", "sysfs", 0, ""))
	NoError(t, unix.Mount("tmpfs", "/run", "tmpfs", 0, ""))
	Sh(t, "ip link set lo up")
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
}

func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Sh executes one command line without quoting.
func Sh(t testing.TB, format string, args ...any) string {
	t.Helper()
	words := strings.Fields(fmt.Sprintf(format, args...))
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// The two ends of the veth that most tests attach to: near here, far in the namespace PeerNS.
const (
	Near   = "xdpmon-a0"
	Far    = "xdpmon-b0"
	PeerNS = "xdpmon-peer"
	nearIP = "10.77.0.1"
	FarIP  = "10.77.0.2"
)

// Veth makes the pair. Addresses of the link layer are entered by hand, so that no packet is on it but those of the test.
func Veth(t *testing.T) {
	t.Helper()
	Sh(t, "ip netns add %s", PeerNS)
	AddVeth(t)
	quietPeer(t)
}

func quietPeer(t *testing.T) {
	t.Helper()
	Sh(t, "ip -n %s link set %s up", PeerNS, Far)
}

func AddVeth(t *testing.T) {
	t.Helper()
	Sh(t, "ip netns exec %s sysctl -qw net.ipv6.conf.default.disable_ipv6=1", PeerNS)
	Sh(t, "ip link add %s address 02:00:00:00:00:0a type veth peer name %s address 02:00:00:00:00:0b netns %s", Near, Far, PeerNS)
	Sh(t, "ip addr add %s/24 dev %s", nearIP, Near)
	Sh(t, "ip link set %s up", Near)
	Sh(t, "ip neigh add %s lladdr 02:00:00:00:00:0b dev %s nud permanent", FarIP, Near)
	Sh(t, "ip -n %s addr add %s/24 dev %s", PeerNS, FarIP, Far)
	Sh(t, "ip -n %s link set %s up", PeerNS, Far)
	Sh(t, "ip -n %s neigh add %s lladdr 02:00:00:00:00:0a dev %s nud permanent", PeerNS, nearIP, Far)
}

// InPeer runs fn on a thread in the peer's namespace.
func InPeer(t testing.TB, fn func() error) {
	t.Helper()
	ns, err := namespace.Open("/run/netns/" + PeerNS)
	NoError(t, err)
	defer ns.Close()
	NoError(t, ns.Run(fn))
}

// SendFromPeer sends n UDP datagrams to the near end; veth delivers each before the call returns.
func SendFromPeer(t testing.TB, n int) {
	t.Helper()
	InPeer(t, func() error { return SendUDP(nearIP, n) })
}

func SendUDP(to string, n int) error {
	conn, err := net.Dial("udp", to+":7777")
	if err != nil {
		return err
	}
	defer conn.Close()
	for range n {
		// The other side answers with "port unreachable" now and then, which the next write reports.
		if _, err := conn.Write([]byte("xdpmon")); err != nil {
			_, err = conn.Write([]byte("xdpmon"))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Helpers are what child processes do, by the value of helperEnv.
var Helpers = map[string]func(args []string) error{}

const helperEnv = "XDPMON_TEST_HELPER"

// UntilKilled is how a helper waits for its end: with nothing but an empty select the runtime may call it a deadlock.
func UntilKilled() error {
	for {
		time.Sleep(time.Hour)
	}
}

// Main runs the tests of a package, or the function of a child process. It fails the package when its tests leave descriptors or
// goroutines, in the processes that isolated starts too.
func Main(m *testing.M) {
	args := strings.Fields(os.Getenv(helperEnv))
	if len(args) == 0 {
		testutil.Main(m)
		return
	}
	if err := Helpers[args[0]](args[1:]); err != nil {
		fmt.Println("HELPER FAILED:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// HelperProcess prepares a child process; it prints "ready" when it is.
func HelperProcess(format string, args ...any) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), helperEnv+"="+fmt.Sprintf(format, args...))
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	cmd.Stderr = os.Stderr
	return cmd
}
