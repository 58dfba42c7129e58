package privilege_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/detach"
	"github.com/xdpmon/xdpmon/loader/features"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/loader/status"
	"github.com/xdpmon/xdpmon/loader/watch"
	"github.com/xdpmon/xdpmon/tests/isolated"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestCapabilitiesThatStay(t *testing.T) {
	all := privilege.SetOf(privilege.CapBPF, privilege.CapPerfmon, privilege.CapNetAdmin, privilege.CapSysAdmin, 0, 21)
	for _, tc := range []struct {
		name      string
		permitted privilege.CapSet
		keep      privilege.Keep
		mapAccess bool
		want      []string
	}{
		{"nothing more to do", all, privilege.Keep{}, false, nil},
		{"maps ask for it", all, privilege.Keep{}, true, []string{"CAP_BPF"}},
		{"re-attach", all, privilege.Keep{Reattach: true}, false, []string{"CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"}},
		{"only the old capability", privilege.SetOf(privilege.CapSysAdmin, privilege.CapNetAdmin), privilege.Keep{Load: true}, false, []string{"CAP_NET_ADMIN", "CAP_SYS_ADMIN"}},
		{"none to begin with", 0, privilege.Keep{Reattach: true}, true, nil},
	} {
		if got := privilege.Remaining(tc.permitted, tc.keep, tc.mapAccess).Names(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// runAs runs a helper that drops to the given capabilities before anything else and reports what it found.
func runAs(t *testing.T, format string, args ...any) string {
	t.Helper()
	cmd := lab.HelperProcess(format, args...)
	cmd.Stderr = nil
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

func init() {
	lab.Helpers["without"] = helperWithout
	lab.Helpers["drop"] = helperDrop
	lab.Helpers["differ"] = helperDiffer
	lab.Helpers["look"] = helperLook
	lab.Helpers["userns"] = helperUserNamespace
}

// helperWithout attaches after giving up capabilities: it is to fail with the name of what is missing.
func helperWithout(args []string) error {
	keep := map[string]privilege.CapSet{
		"none": 0, "bpf": privilege.SetOf(privilege.CapBPF), "net": privilege.SetOf(privilege.CapNetAdmin), "bpf,net": privilege.SetOf(privilege.CapBPF, privilege.CapNetAdmin),
	}[args[0]]
	if err := privilege.WriteCaps(keep); err != nil {
		return err
	}
	err := privilege.Check()
	fmt.Println(errors.Is(err, privilege.ErrMissing), err)
	inst, err := loader.Load(nil, loader.Options{Seed: 1})
	if err == nil {
		_, err = attach.Attach(inst, lab.Near, attach.Options{Hook: attach.Hook(args[1])})
	}
	fmt.Println("finally:", errors.Is(err, privilege.ErrMissing), err)
	f, err := features.Probe(lab.Near)
	fmt.Println("probe:", err, f.Privilege.Missing)
	return nil
}

func TestMissingPrivilegeIsNamed(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	for _, tc := range []struct{ caps, want string }{
		{"none", "lacks CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN"},
		{"bpf", "lacks CAP_PERFMON, CAP_NET_ADMIN"},
		{"net", "lacks CAP_BPF, CAP_PERFMON;"},
		{"bpf,net", "lacks CAP_PERFMON;"},
	} {
		out := runAs(t, "without %s tc", tc.caps)
		t.Log(out)
		for _, want := range []string{"true load programs: privilege missing: this process " + tc.want, "finally: true", "sudo"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", tc.caps, want, out)
			}
		}
	}
}

// helperLook has what attaching needs, and not what looking at others' programs needs.
func helperLook([]string) error {
	if err := privilege.WriteCaps(privilege.SetOf(privilege.AttachNeeds...)); err != nil {
		return err
	}
	_, err := status.List()
	fmt.Println("status:", errors.Is(err, privilege.ErrMissing), err)
	_, err = detach.Detach("xdpmon-none")
	fmt.Println("detach:", errors.Is(err, privilege.ErrMissing), err)
	fmt.Println("other:", privilege.Explain(unix.EPERM))
	return nil
}

// The remedy names what would help: not capabilities that are there.
func TestRemedyIsWhatHelps(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	out := runAs(t, "look")
	for _, want := range []string{"status: true list attachments: privilege missing", "detach: true detach xdpmon-none: privilege missing",
		"grant CAP_SYS_ADMIN\n", "other: privilege missing: operation not permitted; this process has CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: a security policy"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "grant CAP_BPF") {
		t.Errorf("it asks for what is there:\n%s", out)
	}
}

func helperUserNamespace([]string) error {
	err := privilege.Check()
	fmt.Println("check:", errors.Is(err, privilege.ErrMissing), err)
	_, err = loader.Load(nil, loader.Options{Seed: 1})
	fmt.Println("load:", errors.Is(err, privilege.ErrMissing), err)
	f, err := features.Probe("")
	if err != nil {
		return err
	}
	for _, have := range f.Host {
		if have.Key == "capabilities" {
			fmt.Println("features:", have.State, have.Detail)
		}
	}
	return nil
}

// Root of a user namespace has every capability there, and may nothing that BPF needs.
func TestUserNamespaceIsNamed(t *testing.T) {
	testutil.NeedRoot(t)
	cmd := lab.HelperProcess("userns")
	cmd.Stderr = nil
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{Size: 1}}
	out, err := cmd.CombinedOutput()
	lab.NoError(t, err)
	for _, want := range []string{"check: true load programs: privilege missing: root of a user namespace", "load: true ", "features: unsupported root of a user namespace"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "MEMLOCK") {
		t.Errorf("it blames the memory:\n%s", out)
	}
}

// helperDrop attaches, drops what is not needed, and then does everything that a running process does.
func helperDrop(args []string) error {
	inst, err := loader.Load(nil, loader.Options{Seed: 1})
	if err != nil {
		return err
	}
	reattach := args[0] != "stay"
	moved := lab.NewJournal()
	opts := watch.Options{Reattach: reattach, Changed: moved.Changed, Attach: attach.Options{Direction: attach.Both, Notice: moved.Notice}}
	if args[0] == "pinned" {
		if opts.Pin, err = pin.Open(pin.Options{Name: "test"}); err != nil {
			return err
		}
		defer opts.Pin.Close()
		if err := opts.Pin.Match(nil, &loader.Options{Seed: 1}); err != nil {
			return err
		}
	}
	m := watch.NewManager(inst, opts)
	if err := errors.Join(m.Attach(lab.Near), m.Start(context.Background())); err != nil {
		return err
	}
	remaining, err := privilege.Drop(privilege.Keep{Reattach: reattach})
	if err != nil {
		return err
	}
	fmt.Println("remaining", remaining)
	if err := allThreadsHave(remaining); err != nil {
		return err
	}
	lab.SayReady()
	for name := range moved.Moved {
		if name == lab.Near+" true" || !reattach {
			break
		}
	}
	if _, err := inst.Control().Flip(); err != nil {
		return fmt.Errorf("flip: %w", err)
	}
	if _, err := inst.Counts(0); err != nil {
		return fmt.Errorf("counts: %w", err)
	}
	if strings.Contains(moved.Text(), "failed") {
		return errors.New(moved.Text())
	}
	return m.Close()
}

// allThreadsHave waits until every thread has these effective capabilities: one that is ending is listed for a moment.
func allThreadsHave(names []string) (err error) {
	for deadline := time.Now().Add(lab.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if err = allThreadsHaveNow(names); err == nil {
			return nil
		}
	}
	return err
}

func allThreadsHaveNow(names []string) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		status, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		if err != nil {
			continue
		}
		var effective privilege.CapSet
		_, rest, _ := strings.Cut(string(status), "CapEff:")
		if _, err := fmt.Sscanf(rest, "%x", &effective); err != nil {
			return err
		}
		if !slices.Equal(effective.Names(), names) {
			return fmt.Errorf("thread %s has %v", task.Name(), effective.Names())
		}
	}
	if len(tasks) < 2 {
		return errors.New("one thread only: that proves nothing")
	}
	return nil
}

// helperDiffer cannot drop, and has to survive that: a thread lost what the others have, or every thread is forbidden to.
func helperDiffer(args []string) error {
	before, _, err := privilege.ReadCaps()
	if err != nil {
		return err
	}
	switch args[0] {
	case "thread":
		lost, end := make(chan error), make(chan struct{})
		defer close(end)
		go func() {
			runtime.LockOSThread()
			lost <- privilege.SetThreadCaps(0, 0)
			<-end
		}()
		err = <-lost
	case "filter":
		err = forbidCapset()
	}
	if err != nil {
		return err
	}
	if remaining, err := privilege.Drop(privilege.Keep{Reattach: true}); err == nil {
		return fmt.Errorf("dropped to %v", remaining)
	}
	if now, _, err := privilege.ReadCaps(); err != nil || now != before {
		return fmt.Errorf("%v became %v: %w", before.Names(), now.Names(), err)
	}
	_, err = loader.Load(nil, loader.Options{Seed: 1})
	return err
}

// forbidCapset makes capset fail on all threads, as a container's filter may.
func forbidCapset() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CAPSET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

func TestFailedDropIsSurvived(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	for _, why := range []string{"thread", "filter"} {
		cmd := lab.HelperProcess("differ %s", why)
		cmd.Stderr = nil
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", why, err, out)
		}
	}
}

func TestDroppedProcessContinues(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	for _, mode := range []string{"stay", "reattach", "pinned"} {
		c := lab.StartHelper(t, "drop %s", mode)
		lab.Sh(t, "ip link del %s", lab.Near)
		time.Sleep(100 * time.Millisecond)
		lab.AddVeth(t)
		if err := c.Cmd.Wait(); err != nil {
			rest, _ := c.Output.ReadString(0)
			t.Errorf("%s: %v %s", mode, err, rest)
		}
		if mode == "pinned" {
			_, err := detach.Detach(lab.Near)
			lab.NoError(t, err)
			lab.NothingPinned(t, pin.Root)
		}
		lab.NothingLeft(t, lab.Near)
	}
}

// The probe sets the capabilities of one thread aside: afterwards all threads have what they had.
func TestMapAccessProbeKeepsCapabilities(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	before, _, err := privilege.ReadCaps()
	lab.NoError(t, err)
	lab.NoError(t, privilege.WithoutEffective(func() error {
		if now, _, err := privilege.ReadCaps(); err != nil || now != 0 {
			return fmt.Errorf("%v in effect: %w", now.Names(), err)
		}
		return nil
	}))
	t.Logf("map access needs CAP_BPF: %t", privilege.MapAccessNeedsBPF())
	lab.NoError(t, allThreadsHave(before.Names()))
}

func TestMain(m *testing.M) { lab.Main(m) }
