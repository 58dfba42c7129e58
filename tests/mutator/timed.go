package mutator

import (
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// testRun is the part of union bpf_attr for BPF_PROG_TEST_RUN that is used here.
type testRun struct {
	fd, retval, inSize, outSize uint32
	in, out                     uint64
	repeat, duration            uint32
	ctxInSize, ctxOutSize       uint32
	ctxIn, ctxOut               uint64
	flags, cpu                  uint32
}

const bpfProgTestRun = 10

// Timed sends exactly n packets and returns this thread's time for them: other processes on the core do
// not count. Go's scheduler is kept out, so that nothing else runs between two calls; no other goroutine gets this
// one's processor meanwhile.
func (m *Mutator) Timed(n uint32) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := testRun{
		fd: uint32(m.mutate.FD()), in: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.frame)))),
		inSize: uint32(len(m.frame)), repeat: n,
	}
	var taken time.Duration
	err := undisturbed(func() error {
		started, err := threadTime()
		if err != nil {
			return err
		}
		_, _, errno := unix.RawSyscall(unix.SYS_BPF, bpfProgTestRun, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		runtime.KeepAlive(m.frame)
		if errno != 0 {
			return fmt.Errorf("run mutator: %w", errno)
		}
		ended, err := threadTime()
		taken = ended - started
		return err
	})
	if err != nil {
		return 0, err
	}
	return taken, judge(attr.retval, nil)
}

// BurstSize is how many packets of one kind follow each other in Bursts.
const BurstSize = 16384

// TimedBursts sends n packets of Bursts and returns the median time of a burst of responses. The first burst of either
// kind only warms up. Bursts are shorter than a time slice, so few are disturbed by other processes.
func (m *Mutator) TimedBursts(n uint32) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := m.change(func(_ int, s *MutatorMutatorState) { s.Began, s.Left, s.Bursts, s.Answer = 0, 0, 0, s.Ask }); err != nil {
		return 0, err
	}
	if _, err := m.Timed(n); err != nil {
		return 0, err
	}
	states, err := m.states()
	if err != nil {
		return 0, err
	}
	all := make([]MutatorBurstTimes, len(states))
	if err := m.coll.Maps["mutator_bursts"].Lookup(uint32(0), &all); err != nil {
		return 0, fmt.Errorf("read times of bursts: %w", err)
	}
	var times []uint64
	for cpu, s := range states {
		for b := uint32(3); b < min(s.Bursts, uint32(len(all[cpu].Ns))); b += 2 {
			times = append(times, all[cpu].Ns[b])
		}
	}
	if len(times) == 0 {
		return 0, fmt.Errorf("time bursts: %d packets are fewer than five bursts of %d", n, BurstSize)
	}
	slices.Sort(times)
	return time.Duration(times[len(times)/2]), nil
}

// undisturbed blocks signals: one would end the test run early.
func undisturbed(f func() error) error {
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return fmt.Errorf("block signals: %w", err)
	}
	err := f()
	if mask := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil); err == nil && mask != nil {
		return fmt.Errorf("unblock signals: %w", mask)
	}
	return err
}

// threadTime is how long the calling thread has been running on any core.
func threadTime() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0, fmt.Errorf("read thread's clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
