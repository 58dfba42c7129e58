package maps

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// Barrier waits for programs: after Wait, none runs that began before it. An update of a map of maps returns only after an
// RCU grace period, and XDP and TC programs are RCU readers from beginning to end.
//
// All barriers of a process use one pair of maps, and concurrent calls of Wait share an update: the windows of 200 instances that end
// at once take two grace periods, not 200.
type Barrier struct{ once sync.Once }

// grace is the pair of maps of all barriers, and the calls that wait for it.
var grace struct {
	users        sync.Mutex // of count, outer and inner
	count        int        // open barriers
	outer, inner *ebpf.Map

	running sync.Mutex // held during an update
	state   sync.Mutex // of next
	next    *round
}

// round is one update and the calls of Wait from before its start.
type round struct {
	once sync.Once
	err  error
}

// NewBarrier makes one; Close frees it.
func NewBarrier() (*Barrier, error) {
	grace.users.Lock()
	defer grace.users.Unlock()
	if grace.count == 0 {
		if err := openGrace(); err != nil {
			return nil, fmt.Errorf("create barrier: %w", err)
		}
	}
	grace.count++
	return &Barrier{}, nil
}

func openGrace() (err error) {
	inner := &ebpf.MapSpec{Name: "xdpmon_inner", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	if grace.inner, err = ebpf.NewMap(inner); err != nil {
		return err
	}
	grace.outer, err = ebpf.NewMap(&ebpf.MapSpec{Name: "xdpmon_barrier", Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4,
		MaxEntries: 1, InnerMap: inner})
	if err != nil {
		return errors.Join(err, grace.inner.Close())
	}
	return nil
}

// Wait returns when every program that was running has ended.
func (b *Barrier) Wait() error {
	grace.state.Lock()
	if grace.next == nil {
		grace.next = new(round)
	}
	r := grace.next
	grace.state.Unlock()

	grace.running.Lock() // a running round may have started before this call, which therefore waits for the next one
	defer grace.running.Unlock()
	r.once.Do(func() {
		grace.state.Lock()
		grace.next = nil // later calls wait for another round
		grace.state.Unlock()
		r.err = grace.outer.Update(uint32(0), grace.inner, ebpf.UpdateAny)
	})
	if r.err != nil {
		return fmt.Errorf("wait for running programs: %w", r.err)
	}
	return nil
}

// Close frees the barrier.
func (b *Barrier) Close() (err error) {
	b.once.Do(func() {
		grace.users.Lock()
		defer grace.users.Unlock()
		if grace.count--; grace.count == 0 {
			err = errors.Join(grace.outer.Close(), grace.inner.Close())
		}
	})
	return err
}
