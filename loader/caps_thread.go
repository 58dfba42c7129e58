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

func capsetArguments(effective, permitted capSet) *capArguments {
	a := &capArguments{header: unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}}
	a.data[0] = unix.CapUserData{Effective: uint32(effective), Permitted: uint32(permitted)}
	a.data[1] = unix.CapUserData{Effective: uint32(effective >> 32), Permitted: uint32(permitted >> 32)}
	return a
}

// writeCaps sets effective and permitted on all threads of the process and empties inheritable, which empties
// the ambient set too. A capability belongs to a thread: one capset would leave the others as they were.
func writeCaps(s capSet) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	a := capsetArguments(s, s)
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

// mapAccessNeedsBPF tries to read and write a map on a thread that sets its capabilities aside for the moment.
// When it cannot be tried, the answer is yes: keeping one capability is the smaller mistake.
func mapAccessNeedsBPF() bool {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "xdpmon_probe", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return true
	}
	defer m.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return withoutEffective(func() error { return accessMap(m) }) != nil
}

// withoutEffective runs fn on the calling thread with no capability in effect. They stay permitted, so that they can
// be taken up again: a thread that had lost them for good would make writeCaps fail, which has to succeed on all.
func withoutEffective(fn func() error) error {
	effective, permitted, err := readCaps()
	if err != nil {
		return err
	}
	if err := setThreadCaps(0, permitted); err != nil {
		return err
	}
	return errors.Join(fn(), setThreadCaps(effective, permitted))
}

func setThreadCaps(effective, permitted capSet) error {
	a := capsetArguments(effective, permitted)
	return unix.Capset(&a.header, &a.data[0])
}

// accessMap does what a window does.
func accessMap(m *ebpf.Map) error {
	var value uint64
	if err := m.Lookup(uint32(0), &value); err != nil {
		return err
	}
	return m.Put(uint32(0), value)
}
