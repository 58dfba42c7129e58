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

	"github.com/xdpmon/xdpmon/tests/emulator"
	"github.com/xdpmon/xdpmon/tests/netns"
	"github.com/xdpmon/xdpmon/tests/netns/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// crashEnv makes the test binary a process that builds a network and waits to be killed.
const crashEnv = "XDPMON_TEST_CRASH"

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		crash()
	}
	testutil.Main(m)
}

func crash() {
	topology, err := netns.New(netns.Options{Middle: netns.Emulator})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(topology.A.Name)
	select {}
}

// namespaces lists the mounts of this project, and locks lists the claims.
func namespaces(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("/run/netns/xdpmon-*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func of(names []string, name string) (n int) {
	id := strings.TrimSuffix(name, "-a")
	for _, other := range names {
		if strings.HasPrefix(filepath.Base(other), id) {
			n++
		}
	}
	return n
}

// talk sends a megabyte there and a line back over real TCP.
func talk(t *testing.T, from, to *netns.Host, address netip.Addr) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
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
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
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

func TestCloseLeavesNothing(t *testing.T) {
	testutil.NeedRoot(t)
	home := inode(t, "/proc/thread-self/ns/net")
	for _, middle := range []netns.Middle{netns.Direct, netns.Bridge, netns.Emulator} {
		topology, err := netns.New(netns.Options{Middle: middle})
		if err != nil {
			t.Fatal(err)
		}
		name := topology.A.Name
		if n := of(namespaces(t), name); n < 2 {
			t.Errorf("%d namespaces while it exists", n)
		}
		for range 2 {
			if err := topology.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := of(namespaces(t), name); n != 0 {
			t.Errorf("%d namespaces of %s are left", n, name)
		}
	}
	if inode(t, "/proc/thread-self/ns/net") != home {
		t.Error("the caller is in another namespace now")
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
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

// A process that is killed leaves its namespaces behind; the next network removes them, and only them.
func TestStaleIsRemoved(t *testing.T) {
	testutil.NeedRoot(t)
	alive := netnstest.New(t, netns.Options{})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	name, err := bufio.NewReader(out).ReadString('\n')
	name = strings.TrimSpace(name)
	if err != nil || strings.HasPrefix(name, "error") {
		t.Fatalf("the other process: %s %v", name, err)
	}
	if removed, err := netns.RemoveStale(); err != nil || of(removed, name) != 0 {
		t.Errorf("removed %v of a process that is alive: %v", removed, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if n := of(namespaces(t), name); n != 3 {
		t.Errorf("%d namespaces of the killed process, want 3", n)
	}
	another := netnstest.New(t, netns.Options{})
	if n := of(namespaces(t), name); n != 0 {
		t.Errorf("%d namespaces of the killed process are left", n)
	}
	talk(t, alive.A, alive.B, alive.B.IPv4)
	talk(t, another.A, another.B, another.B.IPv4)
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
	if err := server.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
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
	if removed, err := netns.RemoveStale(); len(removed) > 0 || err != nil {
		t.Errorf("the refused networks left %v: %v", removed, err)
	}
}
