package precision

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// perCore tasks share a core: most of the time of a short replay is waiting for the kernel to load and to let go.
const perCore = 3

// Parallel runs tasks 0 to n-1. A replay stays on the first core that its thread is allowed, so a task's thread is allowed one.
func Parallel(n int, task func(i int) error) error {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return fmt.Errorf("read cores: %w", err)
	}
	var group sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, n)
	for cpu := range 8192 {
		if !allowed.IsSet(cpu) {
			continue
		}
		for range perCore {
			group.Go(func() { work(cpu, &next, errs, task) })
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

// work executes tasks until there are none.
func work(cpu int, next *atomic.Int64, errs []error, task func(i int) error) {
	runtime.LockOSThread() // not given back: the thread ends with the goroutine, and its affinity with it
	var one unix.CPUSet
	one.Set(cpu)
	pinned := unix.SchedSetaffinity(0, &one)
	for {
		i := int(next.Add(1)) - 1
		if i >= len(errs) {
			return
		}
		if errs[i] = pinned; pinned == nil {
			errs[i] = task(i)
		}
	}
}
