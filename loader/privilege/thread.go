package privilege

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// capArguments are what capset(2) takes.
type capArguments struct {
	header unix.CapUserHeader
	data   [2]unix.CapUserData
}

func capsetArguments(effective, permitted capSet) *capArguments {
	a := &capArguments{header: unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}}
	a.data[0] = unix.CapUserData{Effective: uint32(effective), Permitted: uint32(permitted)}
	a.data[1] = unix.CapUserData{Effective: uint32(effective >> 32), Permitted: uint32(permitted >> 32)}
	return a
}

// writeCaps sets effective and permitted on all threads of the process and empties inheritable, which empties
// the ambient set too. A capability belongs to a thread: one capset would leave the others as they were.
func writeCaps(s capSet) error {
	if err := threadsMay(s); err != nil {
		return err
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	a := capsetArguments(s, s)
	pin.Pin(a) // the call takes plain numbers for addresses
	return onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&a.header)), uintptr(unsafe.Pointer(&a.data[0])))
}

// setNoNewPrivileges prevents programs that this process starts from gaining privileges, even as root.
func setNoNewPrivileges() error {
	return onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
}

// onAllThreads makes one system call on every thread. A thread that fails where others succeeded is the end of the process:
// the Go runtime aborts (and psx with cgo kills). So a temporary thread makes the call first, and its
// failure is returned as an error.
func onAllThreads(call, first, second uintptr) error {
	err := onOwnThread(func() error {
		if _, _, errno := unix.RawSyscall6(call, first, second, 0, 0, 0, 0); errno != 0 {
			return errno
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, _, errno := psx.Syscall6(call, first, second, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// onOwnThread runs fn on a thread that ends with it: no other goroutine runs there after fn has changed it.
func onOwnThread(fn func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- fn()
	}()
	return <-done
}

// errThreadsDiffer: threads have different capabilities.
var errThreadsDiffer = errors.New("the threads of this process have different privileges")

// threadsMay reports whether all threads can be given a set of capabilities: they hold it, and are under the same filters.
func threadsMay(s capSet) error {
	paths, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		return err
	}
	filters := ""
	for _, path := range paths {
		status, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return err
		}
		fields := statusFields(status)
		permitted, err := strconv.ParseUint(fields["CapPrm"], 16, 64)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if filters == "" {
			filters = fields["Seccomp_filters"]
		}
		if s&^capSet(permitted) != 0 || fields["Seccomp_filters"] != filters {
			return errThreadsDiffer
		}
	}
	return nil
}

// statusFields are the lines of a status file below /proc, by name.
func statusFields(status []byte) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}

// mapAccessNeedsBPF tries to read and write a map on a thread of its own that sets its capabilities aside. When it cannot be
// tried, the answer is yes: keeping one capability is the smaller mistake.
func mapAccessNeedsBPF() bool {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "xdpmon_probe", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return true
	}
	defer m.Close()
	return withoutEffective(func() error { return accessMap(m) }) != nil
}

// withoutEffective runs fn on a thread with no capability in effect. They stay permitted: while the thread ends it may still
// be asked to change them, and a thread that had lost them could not.
func withoutEffective(fn func() error) error {
	return onOwnThread(func() error {
		effective, permitted, err := readCaps()
		if err != nil {
			return err
		}
		if err := setThreadCaps(0, permitted); err != nil {
			return err
		}
		return errors.Join(fn(), setThreadCaps(effective, permitted))
	})
}

func setThreadCaps(effective, permitted capSet) error {
	a := capsetArguments(effective, permitted)
	return unix.Capset(&a.header, &a.data[0])
}

// accessMap reads and writes a map as the end of a window does.
func accessMap(m *ebpf.Map) error {
	var value uint64
	if err := m.Lookup(uint32(0), &value); err != nil {
		return err
	}
	return m.Put(uint32(0), value)
}
