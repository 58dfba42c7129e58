package outlet

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Monotonic is the clock of windows, ns since boot.
func Monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("outlet: CLOCK_MONOTONIC cannot be read: " + err.Error()) // every Linux has it
	}
	return t.Nano()
}

// Clock is how the windows' clock stands to the wall's now. Over months it moves.
func Clock() report.Clock {
	return report.Clock{Name: "monotonic", UnixOffsetNS: time.Now().UnixNano() - Monotonic()}
}
