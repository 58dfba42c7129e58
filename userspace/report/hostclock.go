package report

import (
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic is the clock of live windows, which bpf_ktime_get_ns reads: ns since boot.
func Monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("report: CLOCK_MONOTONIC cannot be read: " + err.Error()) // every Linux has it
	}
	return t.Nano()
}

// HostClock is how the clock of live windows stands to the wall's now. Over months it moves.
func HostClock() Clock {
	return Clock{Name: "monotonic", UnixOffsetNS: time.Now().UnixNano() - Monotonic()}
}
