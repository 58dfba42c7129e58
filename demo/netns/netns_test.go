package netns_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// helpers are functions that the test binary runs in a process of its own, by the value of helperEnv.
var helpers = map[string]func() error{"build": build, "foreign": foreign}

const helperEnv = "XDPMON_TEST_NETNS_HELPER"

func TestMain(m *testing.M) {
	if helper, ok := helpers[os.Getenv(helperEnv)]; ok {
		if err := helper(); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testutil.Main(m)
}

func helperProcess(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+name)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return cmd
}

// build makes a network and waits to be killed.
func build() error {
	topology, err := netns.New(netns.Options{Middle: netns.Emulator})
	if err != nil {
		return err
	}
	fmt.Printf("net:[%d]\n", inodeOf(fmt.Sprintf("/proc/self/fd/%d", topology.A.Fd())))
	for {
		time.Sleep(time.Hour) // with nothing but select {} the runtime may call it a deadlock
	}
}

// foreign runs `ip netns` of another process while a network exists, on a machine where it was never used before. It is run
// with mounts of its own.
func foreign() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		return err
	}
	first, err := netns.New(netns.Options{})
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"add", "xdpmon-foreign"}, {"delete", "xdpmon-foreign"}} {
		if out, err := exec.Command("ip", append([]string{"netns"}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip netns %v: %w: %s", args, err, out)
		}
	}
	second, err := netns.New(netns.Options{})
	if err != nil {
		return err
	}
	return errors.Join(first.Close(), second.Close())
}

// holders lists what keeps a network namespace (net:[N]) alive: processes by descriptor, and mounts.
func holders(t *testing.T, name string) (found []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(mounts), "\n") {
		if strings.Contains(line, name) {
			found = append(found, line)
		}
	}
	paths, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if target, err := os.Readlink(path); err == nil && target == name {
			found = append(found, path)
		}
	}
	return found
}

// talk sends a megabyte there and a line back over real TCP.
func talk(t *testing.T, from, to *netns.Host, address netip.Addr) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listener, err := to.Listen(ctx, "tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	got := make(chan int64, 1)
	go func() { got <- serveOnce(listener) }()
	conn, err := from.Dial(ctx, "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if n := <-got; n != 1<<20 || string(answer) != "thanks\n" || err != nil {
		t.Errorf("%v received %d bytes and answered %q: %v", address, n, answer, err)
	}
}

func serveOnce(listener net.Listener) int64 {
	conn, err := listener.Accept()
	if err != nil {
		return -1
	}
	defer conn.Close()
	n, err := io.Copy(io.Discard, conn)
	if err != nil {
		return -1
	}
	if _, err := conn.Write([]byte("thanks\n")); err != nil {
		return -1
	}
	return n
}

func TestRealTCP(t *testing.T) {
	for name, opts := range map[string]netns.Options{
		"direct":   {},
		"single":   {SingleSegments: true},
		"bridge":   {Middle: netns.Bridge, MTU: 9000},
		"emulator": {Middle: netns.Emulator},
	} {
		t.Run(name, func(t *testing.T) {
			topology := netnstest.New(t, opts)
			talk(t, topology.A, topology.B, topology.B.IPv4)
			talk(t, topology.B, topology.A, topology.A.IPv6)
		})
	}
}

// awaitUnused waits until no process holds a namespace: an xdpmon that attaches elsewhere opens all of them for a moment.
func awaitUnused(t *testing.T, name string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if left = holders(t, name); len(left) == 0 {
			return
		}
	}
	t.Errorf("%s is left, held by %v", name, left)
}

func TestCloseLeavesNothing(t *testing.T) {
	testutil.NeedRoot(t)
	home := inodeOf("/proc/thread-self/ns/net")
	for _, middle := range []netns.Middle{netns.Direct, netns.Bridge, netns.Emulator} {
		topology, err := netns.New(netns.Options{Middle: middle})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("net:[%d]", inodeOf(fmt.Sprintf("/proc/self/fd/%d", topology.A.Fd())))
		if len(holders(t, name)) == 0 {
			t.Error("nothing holds a namespace that exists")
		}
		for range 2 {
			if err := topology.Close(); err != nil {
				t.Error(err)
			}
		}
		awaitUnused(t, name)
	}
	if inodeOf("/proc/thread-self/ns/net") != home {
		t.Error("the caller is in another namespace now")
	}
}

func inodeOf(path string) uint64 {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		panic(err)
	}
	return st.Ino
}

func interfaces(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

// A process that is killed leaves no namespace.
func TestKilledProcessLeavesNothing(t *testing.T) {
	testutil.NeedRoot(t)
	cmd := helperProcess("build")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	name, err := bufio.NewReader(out).ReadString('\n')
	name = strings.TrimSpace(name)
	if err != nil || !strings.HasPrefix(name, "net:") {
		t.Fatalf("the other process: %s %v", name, err)
	}
	if len(holders(t, name)) == 0 {
		t.Errorf("nothing holds %s while its process lives", name)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	awaitUnused(t, name)
}

// The first `ip netns add` on a machine mounts over /run/netns. That must prevent neither the removal of a network
// nor the creation of the next one.
func TestForeignNamespaces(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.NeedTool(t, "ip")
	cmd := helperProcess("foreign")
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestRunInNamespace(t *testing.T) {
	topology := netnstest.New(t, netns.Options{})
	errBack := errors.New("back")
	err := topology.A.Run(func() error {
		if got := interfaces(t); got != "lo xdpmon-a0" {
			return fmt.Errorf("interfaces %q inside", got)
		}
		return errBack
	})
	if !errors.Is(err, errBack) {
		t.Error(err)
	}
	out, err := topology.B.Output(t.Context(), "ip", "-o", "-4", "addr", "show", "xdpmon-b0")
	if err != nil || !strings.Contains(string(out), "10.77.0.2/24") {
		t.Errorf("%s: %v", out, err)
	}
	if _, err := topology.B.Output(t.Context(), "ip", "link", "show", "nothing"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a failing command: %v", err)
	}
	if _, err := topology.A.Dial(t.Context(), "tcp", "localhost:80"); err == nil {
		t.Error("a name that would be looked up outside was dialled")
	}
}

func TestDatagrams(t *testing.T) {
	topology := netnstest.New(t, netns.Options{})
	server, err := topology.B.ListenPacket(t.Context(), "udp", "10.77.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := topology.A.Dial(t.Context(), "udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := server.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	n, from, err := server.ReadFrom(buf)
	if err != nil || string(buf[:n]) != "hello" || !strings.HasPrefix(from.String(), "10.77.0.1:") {
		t.Errorf("%q from %v: %v", buf[:n], from, err)
	}
}

func TestImpossibleOptions(t *testing.T) {
	testutil.NeedRoot(t)
	for _, opts := range []netns.Options{
		{MTU: 100},
		{Middle: netns.Emulator, Link: emulator.Options{AtoB: emulator.Direction{Loss: 2}}},
	} {
		if topology, err := netns.New(opts); err == nil {
			t.Errorf("%+v was accepted", opts)
			_ = topology.Close()
		}
	}
}
