package faults

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// TestFaults lets some calls fail that start, run and end depend on; `make faults` does so with all.
func TestFaults(t *testing.T) {
	testutil.NeedRoot(t)
	binary, err := Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := Scenario{Binary: binary, Args: Arguments, Patience: time.Minute}
	usual, err := s.Usual()
	if err != nil {
		t.Fatal(err)
	}
	bpf, socket := Call{Name: "bpf", Number: unix.SYS_BPF}, Call{Name: "socket", Number: unix.SYS_SOCKET}
	for _, c := range []struct {
		fault Fault
		kinds []Kind
	}{
		{Fault{bpf, unix.ENOMEM, 30}, []Kind{Failed, Reported, Unaffected}},
		{Fault{bpf, unix.ENOMEM, 120}, []Kind{Failed, Reported, Unaffected, NotInjected}},
		{Fault{socket, unix.EMFILE, 14}, []Kind{Failed, Reported, Unaffected}}, // about where watching the interfaces begins
		{Fault{socket, unix.EMFILE, 15}, []Kind{Failed, Reported, Unaffected, NotInjected}},
		{Fault{Call{Name: "getsockname", Number: unix.SYS_GETSOCKNAME}, unix.ENOBUFS, 1}, []Kind{Failed}}, // of the metrics' listener
		{Fault{Call{Name: "capset", Number: unix.SYS_CAPSET}, unix.EPERM, 3}, []Kind{Reported}},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			o, err := s.Run(c.fault, usual)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(c.kinds, o.Kind) {
				t.Errorf("%v, want %v: %s\n%s", o.Kind, c.kinds, o.Problem, o.Stderr)
			}
			t.Log(o.Kind, o.Message())
		})
	}
}

// TestInjection: the third of three calls fails and no other, and a process that makes fewer goes on.
func TestInjection(t *testing.T) {
	testutil.NeedRoot(t)
	for k, want := range map[int]string{0: "aaa", 1: "faa", 3: "aaf", 4: "aaa"} {
		if got := threeCalls(t, Fault{Call{Name: "chdir", Number: unix.SYS_CHDIR}, unix.EIO, k}); got != want {
			t.Errorf("K=%d: %s, want %s", k, got, want)
		}
	}
}

// threeCalls runs a shell that changes its folder three times and prints a letter for each: allowed, failed.
func threeCalls(t *testing.T, fault Fault) string {
	t.Helper()
	out, injected := shell(t, fault, `for i in 1 2 3; do if cd /tmp 2>/dev/null; then printf a; else printf f; fi; done`)
	if injected != (fault.K > 0 && fault.K <= 3) {
		t.Errorf("K=%d: injected %v", fault.K, injected)
	}
	return out
}

func shell(t *testing.T, fault Fault, script string) (out string, injected bool) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	var text strings.Builder
	cmd.Stdout = &text
	injector, err := Start(cmd, fault, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	when, err := injector.Wait()
	if err != nil {
		t.Error(err)
	}
	return text.String(), when != nil
}
