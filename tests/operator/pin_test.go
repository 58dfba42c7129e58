package operator

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
)

const ownMountsEnv = "XDPMON_OPERATOR_OWN_MOUNTS"

// ownMounts runs a test again in a process whose mounts are its own, with a private BPF file system: pins
// must not appear on the machine. It returns true in that process.
func ownMounts(t *testing.T) bool {
	t.Helper()
	needRoot(t)
	if os.Getenv(ownMountsEnv) == t.Name() {
		for _, err := range []error{
			unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("bpf", "/sys/fs/bpf", "bpf", 0, "mode=0700"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), ownMountsEnv+"="+t.Name(), binaryEnv+"="+binary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("with its own mounts: %v\n%s", err, out)
	}
	return false
}

// TestKilledPinnedRunIsTakenOver: packets are counted while no process runs, none twice, in a window that began when they were counted first, and detach removes
// everything.
func TestKilledPinnedRunIsTakenOver(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	network := netnstest.New(t, netns.Options{})
	args := []string{"--algo", "fridge", "--pin", "operator", "--window", "1h"}
	first := start(t, network, args...)
	shakeHands(t, network, 10)
	killed := hostclock.Now()
	first.kill()
	if onInterface(t, network) == "" {
		t.Fatal("nothing is attached: --pin did not keep it")
	}
	shakeHands(t, network, 10)
	second := start(t, network, args...)
	shakeHands(t, network, 10)
	o := second.stop(t, syscall.SIGINT)
	o.want(t, done, "")
	if sum, _ := matched(t, o); sum != 30 {
		t.Errorf("%.0f handshakes counted, want 30: 10 before the kill, 10 without a process, 10 after", sum)
	}
	if start := number(t, windows(t, o.out)[0], "window", "start"); start > float64(killed) {
		t.Errorf("the window of these begins %.3f s after the kill", (start-float64(killed))/1e9)
	}
	if onInterface(t, network) == "" {
		t.Error("the end of the run took the pinned programs away")
	}
	detached := inside(t, network, "detach", network.A.Interface)
	detached.want(t, done, "")
	if !strings.Contains(detached.out, "operator") {
		t.Errorf("detach does not name the instance: %q", detached.out)
	}
	clean(t, network)
	entries, err := os.ReadDir("/sys/fs/bpf")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".debug") { // the kernel's own
			t.Errorf("left in the BPF file system: %s", entry.Name())
		}
	}
	inside(t, network, "detach", network.A.Interface).want(t, failed, "nothing of xdpmon is attached")
}
