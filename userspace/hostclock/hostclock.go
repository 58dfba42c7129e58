// Package hostclock reads the clock of live windows and its offset to wall clock time.
package hostclock

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Now is the clock of live windows, which bpf_ktime_get_ns reads: ns since boot.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("hostclock: CLOCK_MONOTONIC cannot be read: " + err.Error()) // every Linux has it
	}
	return t.Nano()
}

// Read returns the offset of the clock of live windows to wall clock time now. It changes over months.
func Read() report.Clock {
	return report.Clock{Name: "monotonic", UnixOffsetNS: time.Now().UnixNano() - Now()}
}
