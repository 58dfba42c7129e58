// Package faults lets single system calls of a process fail and looks at how it ends: the K-th bpf(2) with ENOMEM, the
// first capset(2) with EPERM, and so on through start, run and end. Calls are counted over all threads, so that K means
// the same call in each run, as far as the process makes its calls in the same order.
//
// A seccomp filter hands the calls to this process, which answers each of them (seccomp_unotify(2), Linux 5.19).
package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Fault is one system call that fails.
type Fault struct {
	Call  Call
	Errno unix.Errno
	K     int // 1: the first one of the process; 0: none fails, all are counted
}

func (f Fault) String() string {
	return fmt.Sprintf("%s %s K=%d", f.Call.Name, unix.ErrnoName(f.Errno), f.K)
}

// Call is a system call.
type Call struct {
	Name   string
	Number uintptr
	// Files counts calls with a file only, by the number of the argument that is its descriptor: mmap without one is
	// memory of the Go runtime. 0: all calls count.
	Files int
}

const childEnv = "XDPMON_FAULTS_CALL"

// listenerFD is where the child finds its end of the socket pair.
const listenerFD = 3

// init is where the process under test begins: it installs the filter on itself and becomes the command.
func init() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	err := becomeFiltered(text)
	fmt.Fprintln(os.Stderr, "install filter:", err)
	os.Exit(125)
}

func becomeFiltered(text string) error {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return err
	}
	if err := os.Unsetenv(childEnv); err != nil {
		return err
	}
	runtime.LockOSThread() // the filter is this thread's
	notify, err := installFilter(uint32(number))
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(listenerFD, []byte{0}, unix.UnixRights(notify), nil, 0); err != nil {
		return err
	}
	unix.CloseOnExec(notify)
	unix.CloseOnExec(listenerFD)
	return unix.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// installFilter asks for notice of one system call, and of execve, which marks the command's start.
func installFilter(number uint32) (notify int, err error) {
	const load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // seccomp_data.nr
		{Code: equal, K: number, Jt: 2},
		{Code: equal, K: unix.SYS_EXECVE, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// Injector answers for the system calls of a process that Start started.
type Injector struct {
	fault    Fault
	injected atomic.Pointer[time.Time] // when
	calls    int
	ended    chan error
}

// Start starts a command with a fault. start is how: (*exec.Cmd).Start or something that enters a namespace first.
func Start(cmd *exec.Cmd, fault Fault, start func(*exec.Cmd) error) (*Injector, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd.Args = append([]string{self, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childEnv, fault.Call.Number))
	cmd.ExtraFiles = []*os.File{theirs}
	err = start(cmd)
	theirs.Close()
	if err != nil {
		return nil, err
	}
	notify, err := receiveFD(int(ours.Fd()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("receive listener: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	i := &Injector{fault: fault, ended: make(chan error, 1)}
	go func() { i.ended <- i.serve(notify) }()
	return i, nil
}

func receiveFD(socket int) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return -1, fmt.Errorf("%d control messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// Wait returns when the process has ended: when the call failed, nil for never.
func (i *Injector) Wait() (injected *time.Time, err error) {
	err = <-i.ended
	return i.injected.Load(), err
}

// notification and answer are struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h.
type notification struct {
	id         uint64
	pid, flags uint32
	call       int32
	arch       uint32
	pointer    uint64
	args       [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// serve answers until no process with the filter is left.
func (i *Injector) serve(notify int) error {
	defer unix.Close(notify)
	for begun := false; ; {
		fds := []unix.PollFd{{Fd: int32(notify), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for system calls: %w", err)
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			if fds[0].Revents&unix.POLLHUP != 0 {
				return nil
			}
			continue
		}
		var n notification
		if err := control(notify, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			continue // the caller was killed meanwhile
		}
		if !begun {
			begun = n.call == unix.SYS_EXECVE
			n.call = -1
		}
		a := i.answer(&n)
		_ = control(notify, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a))
	}
}

func (i *Injector) answer(n *notification) answer {
	a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if n.call != int32(i.fault.Call.Number) || i.fault.Call.Files > 0 && int32(n.args[i.fault.Call.Files-1]) < 0 {
		return a
	}
	if i.calls++; i.calls == i.fault.K {
		now := time.Now()
		i.injected.Store(&now)
		a.flags, a.errno = 0, -int32(i.fault.Errno)
	}
	return a
}

func control(fd int, request uint, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}
