package loader

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

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestCapabilitiesThatStay(t *testing.T) {
	all := setOf(capBPF, capPerfmon, capNetAdmin, capSysAdmin, 0, 21)
	for _, tc := range []struct {
		name      string
		permitted capSet
		keep      Keep
		mapAccess bool
		want      []string
	}{
		{"nothing more to do", all, Keep{}, false, nil},
		{"maps ask for it", all, Keep{}, true, []string{"CAP_BPF"}},
		{"re-attach", all, Keep{Reattach: true}, false, []string{"CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"}},
		{"only the old capability", setOf(capSysAdmin, capNetAdmin), Keep{Load: true}, false, []string{"CAP_NET_ADMIN", "CAP_SYS_ADMIN"}},
		{"none to begin with", 0, Keep{Reattach: true}, true, nil},
	} {
		if got := remaining(tc.permitted, tc.keep, tc.mapAccess).names(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// runAs runs a helper that drops to the given capabilities before anything else and reports what it found.
func runAs(t *testing.T, format string, args ...any) string {
	t.Helper()
	cmd := helperProcess(format, args...)
	cmd.Stderr = nil
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

func init() {
	helpers["without"] = helperWithout
	helpers["drop"] = helperDrop
	helpers["differ"] = helperDiffer
	helpers["look"] = helperLook
	helpers["userns"] = helperUserNamespace
}

// helperWithout attaches after giving up capabilities: it is to fail with the name of what is missing.
func helperWithout(args []string) error {
	keep := map[string]capSet{
		"none": 0, "bpf": setOf(capBPF), "net": setOf(capNetAdmin), "bpf,net": setOf(capBPF, capNetAdmin),
	}[args[0]]
	if err := writeCaps(keep); err != nil {
		return err
	}
	err := CheckPrivilege()
	fmt.Println(errors.Is(err, ErrPrivilege), err)
	inst, err := Load(nil, Options{Seed: 1})
	if err == nil {
		_, err = Attach(inst, near, AttachOptions{Hook: Hook(args[1])})
	}
	fmt.Println("finally:", errors.Is(err, ErrPrivilege), err)
	f, err := Probe(near)
	fmt.Println("probe:", err, f.Privilege.Missing)
	return nil
}

func TestMissingPrivilegeIsNamed(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	for _, tc := range []struct{ caps, want string }{
		{"none", "lacks CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN"},
		{"bpf", "lacks CAP_PERFMON, CAP_NET_ADMIN"},
		{"net", "lacks CAP_BPF, CAP_PERFMON;"},
		{"bpf,net", "lacks CAP_PERFMON;"},
	} {
		out := runAs(t, "without %s tc", tc.caps)
		t.Log(out)
		for _, want := range []string{"true attach programs: privilege missing: this process " + tc.want, "finally: true", "sudo"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", tc.caps, want, out)
			}
		}
	}
}

// helperLook has what attaching needs, and not what looking at others' programs needs.
func helperLook([]string) error {
	if err := writeCaps(setOf(attachNeeds...)); err != nil {
		return err
	}
	_, err := Status()
	fmt.Println("status:", errors.Is(err, ErrPrivilege), err)
	_, err = Detach("xdpmon-none")
	fmt.Println("detach:", errors.Is(err, ErrPrivilege), err)
	fmt.Println("other:", withRemedy(unix.EPERM))
	return nil
}

// The remedy names what would help: not capabilities that are there.
func TestRemedyIsWhatHelps(t *testing.T) {
	if !isolated(t) {
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
	err := CheckPrivilege()
	fmt.Println("check:", errors.Is(err, ErrPrivilege), err)
	_, err = Load(nil, Options{Seed: 1})
	fmt.Println("load:", errors.Is(err, ErrPrivilege), err)
	fmt.Println("features:", askCapabilities())
	return nil
}

// Root of a user namespace has every capability there, and may nothing that BPF needs.
func TestUserNamespaceIsNamed(t *testing.T) {
	testutil.NeedRoot(t)
	cmd := helperProcess("userns")
	cmd.Stderr = nil
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{Size: 1}}
	out, err := cmd.CombinedOutput()
	noError(t, err)
	for _, want := range []string{"check: true attach programs: privilege missing: root of a user namespace", "load: true ", "root of a user namespace"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "MEMLOCK") {
		t.Errorf("it blames the memory:\n%s", out)
	}
}

// A start with too few descriptors is refused before anything is loaded, and never blamed on the verifier.
func TestDescriptorsAreChecked(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	objects := fridgeObject(t, 4096)
	for free := 0; ; free += 4 {
		var inst *Instance
		err := withFreeDescriptors(t, free, func() (err error) {
			if inst, err = Load(objects, Options{Seed: 1}); err != nil {
				return err
			}
			a, err := Attach(inst, near, AttachOptions{Direction: Both})
			if err != nil {
				return fmt.Errorf("after it was loaded: %w", err)
			}
			return errors.Join(a.Close(), inst.Close())
		})
		if err == nil {
			t.Logf("%d free descriptors are enough", free)
			break
		}
		if !errors.Is(err, ErrDescriptors) || errors.Is(err, ErrVerifier) || !strings.Contains(err.Error(), "ulimit -n") || inst != nil {
			t.Fatalf("%d free descriptors: %v", free, err)
		}
	}
	nothingLeft(t, near)
}

// helperDrop attaches, drops what is not needed, and then does everything that a running process does.
func helperDrop(args []string) error {
	inst, err := Load(nil, Options{Seed: 1})
	if err != nil {
		return err
	}
	reattach := args[0] != "stay"
	moved := newJournal()
	opts := ManagerOptions{Reattach: reattach, Changed: moved.changed, Attach: AttachOptions{Direction: Both, Notice: moved.notice}}
	if args[0] == "pinned" {
		if opts.Pin, err = OpenPin(PinOptions{Name: "test"}); err != nil {
			return err
		}
		defer opts.Pin.Close()
		if err := opts.Pin.Match(nil, &Options{Seed: 1}); err != nil {
			return err
		}
	}
	m := NewManager(inst, opts)
	if err := errors.Join(m.Attach(near), m.Start(context.Background())); err != nil {
		return err
	}
	kept, err := DropCapabilities(Keep{Reattach: reattach})
	if err != nil {
		return err
	}
	fmt.Println("kept", kept)
	if err := allThreadsHave(kept); err != nil {
		return err
	}
	sayReady()
	for name := range moved.moved {
		if name == near+" true" || !reattach {
			break
		}
	}
	if _, err := inst.Control().Flip(); err != nil {
		return fmt.Errorf("flip: %w", err)
	}
	if _, err := inst.Counts(0); err != nil {
		return fmt.Errorf("counts: %w", err)
	}
	if strings.Contains(moved.text(), "could not") {
		return errors.New(moved.text())
	}
	return m.Close()
}

// allThreadsHave waits until every thread has these effective capabilities: one that is ending is listed for a moment.
func allThreadsHave(names []string) (err error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
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
		var effective capSet
		_, rest, _ := strings.Cut(string(status), "CapEff:")
		if _, err := fmt.Sscanf(rest, "%x", &effective); err != nil {
			return err
		}
		if !slices.Equal(effective.names(), names) {
			return fmt.Errorf("thread %s has %v", task.Name(), effective.names())
		}
	}
	if len(tasks) < 2 {
		return errors.New("one thread only: that proves nothing")
	}
	return nil
}

// helperDiffer cannot drop, and has to survive that: a thread lost what the others have, or every thread is forbidden to.
func helperDiffer(args []string) error {
	before, _, err := readCaps()
	if err != nil {
		return err
	}
	switch args[0] {
	case "thread":
		lost, end := make(chan error), make(chan struct{})
		defer close(end)
		go func() {
			runtime.LockOSThread()
			lost <- setThreadCaps(0, 0)
			<-end
		}()
		err = <-lost
	case "filter":
		err = forbidCapset()
	}
	if err != nil {
		return err
	}
	if kept, err := DropCapabilities(Keep{Reattach: true}); err == nil {
		return fmt.Errorf("dropped to %v", kept)
	}
	if now, _, err := readCaps(); err != nil || now != before {
		return fmt.Errorf("%v became %v: %w", before.names(), now.names(), err)
	}
	_, err = Load(nil, Options{Seed: 1})
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
	if !isolated(t) {
		return
	}
	for _, why := range []string{"thread", "filter"} {
		cmd := helperProcess("differ %s", why)
		cmd.Stderr = nil
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", why, err, out)
		}
	}
}

func TestDroppedProcessGoesOn(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	for _, mode := range []string{"stay", "reattach", "pinned"} {
		c := startHelper(t, "drop %s", mode)
		sh(t, "ip link del %s", near)
		time.Sleep(100 * time.Millisecond)
		addVeth(t)
		if err := c.cmd.Wait(); err != nil {
			rest, _ := c.output.ReadString(0)
			t.Errorf("%s: %v %s", mode, err, rest)
		}
		if mode == "pinned" {
			_, err := Detach(near)
			noError(t, err)
			nothingPinned(t, bpffsRoot)
		}
		nothingLeft(t, near)
	}
}

// The probe sets the capabilities of one thread aside: afterwards all threads have what they had.
func TestMapAccessProbeKeepsCapabilities(t *testing.T) {
	if !isolated(t) {
		return
	}
	before, _, err := readCaps()
	noError(t, err)
	noError(t, withoutEffective(func() error {
		if now, _, err := readCaps(); err != nil || now != 0 {
			return fmt.Errorf("%v in effect: %w", now.names(), err)
		}
		return nil
	}))
	t.Logf("map access needs CAP_BPF: %t", mapAccessNeedsBPF())
	noError(t, allThreadsHave(before.names()))
}

// The verifier's words reach the operator, and the whole log a file.
func TestVerifierErrorIsExplained(t *testing.T) {
	if !isolated(t) {
		return
	}
	t.Setenv("TMPDIR", t.TempDir())
	spec := returning(ebpf.XDP, 0)
	spec.Instructions = spec.Instructions[1:] // returns a register that was never written
	_, err := ebpf.NewProgram(spec)
	err = explain("toy", err)
	if !errors.Is(err, ErrVerifier) || !strings.Contains(err.Error(), "R0 !read_ok") {
		t.Fatalf("got %v", err)
	}
	_, rest, found := strings.Cut(err.Error(), "lines in ")
	if !found {
		t.Fatalf("no file named in %v", err)
	}
	var verifier *ebpf.VerifierError
	if !errors.As(err, &verifier) {
		t.Error("the verifier's error is not kept")
	}
	path := rest
	log, err := os.ReadFile(path)
	noError(t, err)
	if !strings.Contains(string(log), "R0 !read_ok") || !strings.Contains(string(log), "exit") {
		t.Errorf("%s holds\n%s", path, log)
	}
}

func TestExplain(t *testing.T) {
	if explain("toy", nil) != nil {
		t.Error("no error must stay none")
	}
	for err, want := range map[error]error{unix.EPERM: ErrPrivilege, ebpf.ErrNotSupported: ErrUnsupported, unix.ENOMEM: unix.ENOMEM,
		unix.EMFILE: ErrDescriptors, &ebpf.VerifierError{Cause: unix.EMFILE, Log: []string{"processed 0 insns"}}: ErrDescriptors} {
		if got := explain("toy", fmt.Errorf("map create: %w", err)); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
