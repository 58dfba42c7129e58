package maps

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// Barrier waits for programs: after Wait, none runs that began before it. An update of a map of maps returns only after an
// RCU grace period, and XDP and TC programs are RCU readers from beginning to end.
type Barrier struct{ outer, inner *ebpf.Map }

// NewBarrier makes one; Close frees it.
func NewBarrier() (*Barrier, error) {
	inner := &ebpf.MapSpec{Name: "xdpmon_inner", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	m, err := ebpf.NewMap(inner)
	if err != nil {
		return nil, fmt.Errorf("create barrier: %w", err)
	}
	outer, err := ebpf.NewMap(&ebpf.MapSpec{Name: "xdpmon_barrier", Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4,
		MaxEntries: 1, InnerMap: inner})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create barrier: %w", err), m.Close())
	}
	return &Barrier{outer: outer, inner: m}, nil
}

// Wait returns when every program that was running has ended.
func (b *Barrier) Wait() error {
	if err := b.outer.Update(uint32(0), b.inner, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("wait for running programs: %w", err)
	}
	return nil
}

// Close frees the barrier.
func (b *Barrier) Close() error { return errors.Join(b.outer.Close(), b.inner.Close()) }
