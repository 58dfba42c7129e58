package emulator

import (
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A link must not wait for a processor: its delay would be that of a busy machine. So its two threads are scheduled
// before everything else (within what the kernel leaves to real-time threads, 95 % of the time), wake up without
// timer slack, and find a place in Go's scheduler even while all others are taken.
//
// They enter no system call the usual way. On the way back from one, Go's runtime spins while another thread looks at this one (the monitor, which
// takes places from threads in system calls; the garbage collector). That thread has no real-time priority: if this one has just taken
// its processor, both wait until the kernel lets it run, which it does for 50 ms of each second. Links stood still for
// .95 to 1 s by this. A raw system call keeps its place; signals of the runtime interrupt it, so that nobody waits for it.

// prepareThread is called on the thread, which is locked and ends with its goroutine.
func prepareThread() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // ns; 50 us by default
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if unix.SchedSetAttr(0, &attr, 0) != nil { // a container may not
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -15)
	}
}

var places sync.Mutex

// addPlaces changes how many threads run Go code at the same time.
func addPlaces(n int) {
	places.Lock()
	defer places.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// ppoll waits for events, for at most a time where there is one.
func ppoll(fds []unix.PollFd, timeout *unix.Timespec) unix.Errno {
	_, _, err := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
	return err
}
