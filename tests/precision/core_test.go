package precision

import (
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// onCore runs the entry program over all frames of a stream on one core.
func onCore(entry *ebpf.Program, cpu int, stream *Stream) error {
	runtime.LockOSThread() // not given back: the thread ends with the goroutine, and its affinity with it
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to core %d: %w", cpu, err)
	}
	list, err := frames(stream)
	if err != nil {
		return err
	}
	for _, frame := range list {
		if _, err := entry.Run(&ebpf.RunOptions{Data: frame}); err != nil {
			return fmt.Errorf("run on core %d: %w", cpu, err)
		}
	}
	return nil
}
