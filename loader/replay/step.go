package replay

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/bpf/replay"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// Step runs the programs over one frame and returns the vector after them: for measurements of an algorithm's result
// for every packet. It costs two system calls; pending frames of a batch are run first.
func (r *Replayer) Step(f *replay.Frame) (xmaps.PHV, error) {
	if err := r.Flush(); err != nil {
		return xmaps.PHV{}, err
	}
	slot := r.put(f)
	r.pending, r.buffer, r.offset = 0, 0, 0
	if err := r.runOne(slot); err != nil {
		return xmaps.PHV{}, err
	}
	return r.lookAtVector()
}

func (r *Replayer) lookAtVector() (xmaps.PHV, error) {
	var copies [][]byte
	if err := r.vector.Lookup(uint32(0), &copies); err != nil {
		return xmaps.PHV{}, fmt.Errorf("read vector: %w", err)
	}
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		return xmaps.PHV{}, fmt.Errorf("read cores: %w", err)
	}
	for cpu := range copies {
		if cores.IsSet(cpu) { // the one that the replay is pinned to
			if len(copies[cpu]) < int(unsafe.Sizeof(xmaps.PHV{})) {
				break
			}
			return *(*xmaps.PHV)(unsafe.Pointer(unsafe.SliceData(copies[cpu]))), nil
		}
	}
	return xmaps.PHV{}, fmt.Errorf("read vector: %w: not pinned to a core", ErrIncomplete)
}
