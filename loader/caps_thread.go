package loader

import (
	"errors"
	"runtime"
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

func capsetArguments(s capSet) *capArguments {
	a := &capArguments{header: unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}}
	a.data[0] = unix.CapUserData{Effective: uint32(s), Permitted: uint32(s)}
	a.data[1] = unix.CapUserData{Effective: uint32(s >> 32), Permitted: uint32(s >> 32)}
	return a
}

// writeCaps sets effective and permitted on all threads of the process and empties inheritable, which empties
// the ambient set too. A capability belongs to a thread: one capset would leave the others as they were.
func writeCaps(s capSet) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	a := capsetArguments(s)
	pin.Pin(a) // the call takes plain numbers for addresses
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&a.header)), uintptr(unsafe.Pointer(&a.data[0])), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// setNoNewPrivileges makes sure that a program started from here gains nothing, not even as root.
func setNoNewPrivileges() error {
	if _, _, errno := psx.Syscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// mapAccessNeedsBPF tries to read a map on a thread without any capability, which ends with the attempt.
// When it cannot be tried, the answer is yes: keeping one capability is the smaller mistake.
func mapAccessNeedsBPF() bool {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "xdpmon_probe", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return true
	}
	defer m.Close()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is not reused
		result <- accessWithoutCaps(m)
	}()
	return <-result != nil
}

// accessWithoutCaps gives up the capabilities of the calling thread and then does what a window does.
func accessWithoutCaps(m *ebpf.Map) error {
	a := capsetArguments(0)
	if err := unix.Capset(&a.header, &a.data[0]); err != nil {
		return err
	}
	if effective, _, err := readCaps(); err != nil || effective != 0 {
		return errors.New("capabilities were not dropped")
	}
	var value uint64
	if err := m.Lookup(uint32(0), &value); err != nil {
		return err
	}
	return m.Put(uint32(0), value)
}
