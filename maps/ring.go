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

// ErrRing is returned by Ring.Drain when the ring holds data that no program can have written.
var ErrRing = errors.New("ring is damaged")

// The header in front of every record: its length with two flags, and the page it is on.
const (
	ringHeader    = 8
	ringBusy      = 1 << 31
	ringDiscarded = 1 << 30
)

// Ring reads a ring of reports (bpf/include/report.h) by polling: reports cause no wake-up. It is not safe for
// concurrent use. Its mappings go away with it.
//
// Every page of a mapped ring counts twice in the process' memory, whether it holds records or not; so the data is mapped only while
// records arrive. cilium/ebpf's ring reader keeps it mapped for its lifetime, and copies every record.
type Ring struct {
	m                  *ebpf.Map
	consumer, producer *uint64 // positions, in bytes since the ring was made
	data               *mapped // the ring twice in a row, so that no record is cut
	mask               uint64
	idle               int // calls of Drain since the last record
	put                [][]byte
}

// mapped is memory that outlives neither its use nor its ring.
type mapped struct{ b []byte }

func (m *mapped) unmap() {
	if m.b != nil {
		_ = unix.Munmap(m.b)
		m.b = nil
	}
}

// maxIdle is the number of calls of Drain without a record after which the data is unmapped.
const maxIdle = 64

// Ring is the ring of an array of that kind: one for all callers.
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

// Put adds a record that no program has written, a report from elsewhere, to those that the next Drain returns.
func (r *Ring) Put(record []byte) { r.put = append(r.put, record) }

// NewRing maps a ring.
func NewRing(m *ebpf.Map) (*Ring, error) {
	if m.Type() != ebpf.RingBuf {
		return nil, fmt.Errorf("map ring: a %s is no ring", m.Type())
	}
	page := os.Getpagesize()
	own, err := unix.Mmap(m.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map ring: %w", err)
	}
	theirs, err := unix.Mmap(m.FD(), int64(page), page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map ring: %w", err), unix.Munmap(own))
	}
	r := &Ring{m: m, data: &mapped{}, mask: uint64(m.MaxEntries()) - 1}
	r.consumer = (*uint64)(unsafe.Pointer(unsafe.SliceData(own)))
	r.producer = (*uint64)(unsafe.Pointer(unsafe.SliceData(theirs)))
	runtime.AddCleanup(r, func(all [3]*mapped) {
		for _, m := range all {
			m.unmap()
		}
	}, [3]*mapped{{own}, {theirs}, r.data})
	return r, nil
}

// records maps the ring's data, which follows the two positions.
func (r *Ring) records() ([]byte, error) {
	if r.data.b == nil {
		var err error
		page := os.Getpagesize()
		if r.data.b, err = unix.Mmap(r.m.FD(), int64(2*page), 2*int(r.mask+1), unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return nil, fmt.Errorf("map ring: %w", err)
		}
	}
	r.idle = 0
	return r.data.b, nil
}

// rest counts a call without a record.
func (r *Ring) rest() {
	if r.idle++; r.idle == maxIdle {
		r.data.unmap()
	}
}

// Drain passes every finished record to f, oldest first; record is only valid during the call. It stops at a record that a
// program still writes.
func (r *Ring) Drain(f func(record []byte)) error {
	for _, record := range r.put {
		f(record)
	}
	r.put = r.put[:0]
	pos, end := atomic.LoadUint64(r.consumer), atomic.LoadUint64(r.producer)
	if pos == end {
		r.rest()
		return nil
	}
	data, err := r.records()
	if err != nil {
		return err
	}
	for pos < end {
		at := pos & r.mask
		header := atomic.LoadUint32((*uint32)(unsafe.Pointer(&data[at])))
		if header&ringBusy != 0 {
			return nil
		}
		length := uint64(header &^ ringDiscarded)
		if length > r.mask || pos+ringHeader+length > end+7 {
			return fmt.Errorf("drain ring: %w: a record of %d bytes", ErrRing, length)
		}
		if header&ringDiscarded == 0 {
			f(data[at+ringHeader : at+ringHeader+length])
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
