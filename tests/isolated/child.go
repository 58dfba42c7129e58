package lab

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"

	"github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/loader"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// Child is a process that has reported that it is ready.
type Child struct {
	Cmd    *exec.Cmd
	stdin  io.WriteCloser
	Output *bufio.Reader
}

// StartHelper runs a helper and waits for the line "ready".
func StartHelper(t *testing.T, format string, args ...any) *Child {
	t.Helper()
	cmd := HelperProcess(format, args...)
	in, err := cmd.StdinPipe()
	NoError(t, err)
	out, err := cmd.StdoutPipe()
	NoError(t, err)
	NoError(t, cmd.Start())
	c := &Child{cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() { _ = c.Kill() })
	for {
		line, err := c.Output.ReadString('\n')
		if err != nil {
			t.Fatalf("the child ended before it was ready: %v", err)
		}
		if strings.HasPrefix(line, "ready") {
			return c
		}
		t.Log("child: ", strings.TrimSpace(line))
	}
}

// Kill ends the child with SIGKILL and waits until the kernel has taken everything back.
func (c *Child) Kill() error {
	if c.Cmd.ProcessState != nil {
		return nil
	}
	if err := c.Cmd.Process.Kill(); err != nil {
		return err
	}
	_ = c.Cmd.Wait() // "signal: killed"
	return nil
}

// LoadChain makes an instance without algorithms: it parses and counts.
func LoadChain(t testing.TB) *loader.Instance {
	t.Helper()
	inst, err := loader.Load(nil, loader.Options{Seed: 1})
	NoError(t, err)
	t.Cleanup(func() { NoError(t, inst.Close()) })
	return inst
}

// SeenBy ends a window and returns the packets counted in it.
func SeenBy(t testing.TB, inst *loader.Instance) uint64 {
	t.Helper()
	bank, err := inst.Control().Flip()
	NoError(t, err)
	c, err := inst.Counts(bank)
	NoError(t, err)
	return c.Seen
}

// Quiet keeps the kernel from answering the datagrams, which would add packets.
func Quiet(t *testing.T) {
	t.Helper()
	for _, ns := range []string{"", "ip netns exec " + PeerNS + " "} {
		Sh(t, "%ssysctl -qw net.ipv4.icmp_ratelimit=100000 net.ipv4.icmp_msgs_per_sec=0", ns)
	}
}

// NothingLeft fails when an interface still has a program of anybody, or a qdisc for them.
func NothingLeft(t *testing.T, iface string) {
	t.Helper()
	l, err := netlink.LinkByName(iface)
	NoError(t, err)
	if xdp := l.Attrs().Xdp; xdp != nil && xdp.Attached {
		t.Errorf("still on %s: XDP program %d", iface, xdp.ProgId)
	}
	for _, at := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
		if found, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: at}); err == nil && len(found.Programs) > 0 {
			t.Errorf("still on %s, %s: %v", iface, at, found.Programs)
		}
	}
	if out := Sh(t, "tc qdisc show dev %s", iface); strings.Contains(out, "clsact") {
		t.Errorf("the qdisc stayed: %s", out)
	}
}

func SayReady() { os.Stdout.WriteString("ready\n") }

// Journal collects the log of a service manager.
type Journal struct {
	mu    sync.Mutex
	lines []string
	Moved chan string
}

func NewJournal() *Journal { return &Journal{Moved: make(chan string, 16)} }

func (j *Journal) Notice(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *Journal) Changed(iface string, attached bool) {
	j.Moved <- fmt.Sprintf("%s %t", iface, attached)
}

func (j *Journal) Text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

func (j *Journal) Wait(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-j.Moved:
		if got != want {
			t.Fatalf("got %q, want %q; log:\n%s", got, want, j.Text())
		}
	case <-time.After(Patience):
		t.Fatalf("nothing happened, want %q; log:\n%s", want, j.Text())
	}
}

// WithFreeDescriptors runs fn while at most n more descriptors can be opened.
func WithFreeDescriptors(t *testing.T, n int, fn func() error) error {
	t.Helper()
	var before unix.Rlimit
	NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	next, err := unix.Dup(0) // the lowest number that is free
	NoError(t, err)
	NoError(t, unix.Close(next))
	NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next + n), Max: before.Max}))
	err = fn()
	NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	return err
}

// NothingPinned fails when a pin is left.
func NothingPinned(t *testing.T, root string) {
	t.Helper()
	_ = filepath.Walk(filepath.Join(root, "xdpmon"), func(path string, _ os.FileInfo, err error) error {
		if err == nil {
			t.Errorf("still there: %s", path)
		}
		return nil
	})
}

// FridgeObject is a real algorithm with n entries.
func FridgeObject(t *testing.T, n uint32) []loader.Object {
	t.Helper()
	spec, err := fridge.LoadFridge()
	NoError(t, err)
	NoError(t, xmaps.SetEntries(spec, "fridge_entries", n))
	return []loader.Object{{Name: "fridge", Spec: spec}}
}

// DropAllCaps drops all capabilities of all threads of this process.
func DropAllCaps(t *testing.T) {
	t.Helper()
	var data [2]unix.CapUserData
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(header)
	pin.Pin(&data)
	if _, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(&data[0])), 0); errno != 0 {
		t.Fatal(errno)
	}
}
