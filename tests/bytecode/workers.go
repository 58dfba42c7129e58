package bytecode

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Parallel runs tasks 0 to n-1 on all cores. A replay stays on the first core that its thread is allowed, so each
// worker's thread is allowed one core. The first error ends the rest.
func Parallel(ctx context.Context, n int, task func(ctx context.Context, i int) error) error {
	cores, err := cores()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for _, core := range cores {
		wg.Go(func() {
			if err := work(ctx, core, next, task); err != nil {
				cancel(err)
			}
		})
	}
	hand(ctx, n, next)
	wg.Wait()
	return context.Cause(ctx)
}

// hand distributes the numbers of the tasks.
func hand(ctx context.Context, n int, next chan<- int) {
	defer close(next)
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			return
		}
	}
}

func work(ctx context.Context, core int, next <-chan int, task func(context.Context, int) error) error {
	runtime.LockOSThread() // and never unlocked: a thread with another affinity is not given back
	var one unix.CPUSet
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("pin worker to core %d: %w", core, err)
	}
	for i := range next {
		if err := task(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func cores() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read cores: %w", err)
	}
	var list []int
	for cpu := range 8192 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("read cores: none is allowed")
	}
	return list, nil
}
