package maps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrRing is returned by Ring.Drain when the ring holds what no program has written.
var ErrRing = errors.New("ring is damaged")

// The header in front of every record: its length with two flags, and the page it is on.
const (
	ringHeader    = 8
	ringBusy      = 1 << 31
	ringDiscarded = 1 << 30
)

// Ring reads a ring of reports (bpf/include/report.h) by polling: nobody is woken up by a report. It is not safe for
// concurrent use. Its mappings go away with it.
type Ring struct {
	consumer, producer *uint64 // positions, in bytes since the ring was made
	data               []byte  // the ring twice in a row, so that no record is cut
	mask               uint64
	put                [][]byte
}

// Ring of an array of that kind: one for all who ask.
func (a *Array) Ring() (*Ring, error) {
	if a.ring == nil {
		r, err := NewRing(a.m)
		if err != nil {
			return nil, err
		}
		a.ring = r
	}
	return a.ring, nil
}

// Put hands a record to the next Drain that no program has written: a report that came another way.
func (r *Ring) Put(record []byte) { r.put = append(r.put, record) }

// NewRing maps a ring.
func NewRing(m *ebpf.Map) (*Ring, error) {
	if m.Type() != ebpf.RingBuf {
		return nil, fmt.Errorf("map ring: a %s is no ring", m.Type())
	}
	size, page := int(m.MaxEntries()), os.Getpagesize()
	own, err := unix.Mmap(m.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map ring: %w", err)
	}
	theirs, err := unix.Mmap(m.FD(), int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map ring: %w", err), unix.Munmap(own))
	}
	r := &Ring{data: theirs[page:], mask: uint64(size) - 1}
	r.consumer = (*uint64)(unsafe.Pointer(unsafe.SliceData(own)))
	r.producer = (*uint64)(unsafe.Pointer(unsafe.SliceData(theirs)))
	runtime.AddCleanup(r, func(mapped [2][]byte) {
		for _, b := range mapped {
			_ = unix.Munmap(b)
		}
	}, [2][]byte{own, theirs})
	return r, nil
}

// Drain hands every finished record to f, oldest first; record is only valid during the call. It stops at a record that a
// program still writes.
func (r *Ring) Drain(f func(record []byte)) error {
	for _, record := range r.put {
		f(record)
	}
	r.put = r.put[:0]
	pos := atomic.LoadUint64(r.consumer)
	for end := atomic.LoadUint64(r.producer); pos < end; {
		at := pos & r.mask
		header := atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[at])))
		if header&ringBusy != 0 {
			return nil
		}
		length := uint64(header &^ ringDiscarded)
		if length > r.mask || pos+ringHeader+length > end+7 {
			return fmt.Errorf("drain ring: %w: a record of %d bytes", ErrRing, length)
		}
		if header&ringDiscarded == 0 {
			f(r.data[at+ringHeader : at+ringHeader+length])
		}
		pos += (ringHeader + length + 7) &^ 7
		atomic.StoreUint64(r.consumer, pos)
	}
	runtime.KeepAlive(r)
	return nil
}

// Words reads a record of little-endian 64-bit words into dst.
func Words(record []byte, dst []uint64) []uint64 {
	dst = dst[:0]
	for ; len(record) >= 8; record = record[8:] {
		dst = append(dst, binary.NativeEndian.Uint64(record))
	}
	return dst
}
