package testutil

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// OnOneCore keeps a test on the first core that it may use, until it ends: words that each core has are of one then.
func OnOneCore(t *testing.T) {
	t.Helper()
	var before, one unix.CPUSet
	runtime.LockOSThread()
	err := unix.SchedGetaffinity(0, &before)
	for cpu := 0; one.Count() == 0; cpu++ {
		if before.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := errors.Join(err, unix.SchedSetaffinity(0, &one)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.SchedSetaffinity(0, &before)
		runtime.UnlockOSThread()
	})
}
