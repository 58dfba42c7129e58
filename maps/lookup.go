package maps

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// batchRequest is the part of union bpf_attr that batch operations use.
type batchRequest struct {
	in, out, keys, values uint64
	count, fd             uint32
	elemFlags, flags      uint64
}

// notSupported is the kernel's own ENOTSUPP.
const notSupported = unix.Errno(524)

// lookupBatch reads as many elements as there are keys to fill, from a key on; values has their size, with a copy for each CPU in per-CPU maps. The
// library always begins at the first element of a map, where a bank or the part of an instance seldom is. All memory is on the heap: it must not
// move meanwhile.
func lookupBatch(m *ebpf.Map, key int, cursor *[2]uint32, keys []uint32, values unsafe.Pointer) (int, error) {
	cursor[0] = uint32(key) - 1 // the key before; the kernel leaves the last one in the other
	r := batchRequest{out: address(unsafe.Pointer(&cursor[1])), keys: address(unsafe.Pointer(unsafe.SliceData(keys))), values: address(values),
		count: uint32(len(keys)), fd: uint32(m.FD())}
	if key > 0 {
		r.in = address(unsafe.Pointer(&cursor[0]))
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_LOOKUP_BATCH, uintptr(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	runtime.KeepAlive(cursor)
	runtime.KeepAlive(keys)
	runtime.KeepAlive(values)
	runtime.KeepAlive(m)
	switch {
	case errno == 0, errno == unix.ENOENT && r.count > 0: // the map's end was reached
		return int(r.count), nil
	case errno == unix.EINVAL, errno == notSupported:
		return 0, fmt.Errorf("read many elements: %w: %w", ebpf.ErrNotSupported, errno)
	}
	return 0, fmt.Errorf("read many elements: %w", errno)
}

func address(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }
