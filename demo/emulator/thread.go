package emulator

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// A link must not wait for a processor: its delay would be that of a busy machine. So its two threads are scheduled
// before everything else (within what the kernel leaves to real-time threads, 95 % of the time), wake up without
// timer slack, and find a place in Go's scheduler even while all others are taken.

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
