package mutator

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// AimLive sends packets out of a device, as frames of their own: RunLive.
func (m *Mutator) AimLive() error {
	const sendBack = 3 // XDP_TX
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, AttachType: ebpf.AttachXDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, sendBack), asm.Return()}})
	if err != nil {
		return fmt.Errorf("load the program that sends: %w", err)
	}
	defer p.Close() // the mutator's map keeps it
	return m.Aim(p)
}

// Hold keeps the mutator in the kernel's XDP dispatcher until undo: a test run that repeats enters it otherwise, and waits for RCU before and after.
// The calling thread's network namespace lends its loopback, which is down.
func (m *Mutator) Hold() (undo func() error, err error) {
	const loopback = 1
	l, err := link.AttachXDP(link.XDPOptions{Program: m.mutate, Interface: loopback, Flags: link.XDPGenericMode})
	if err != nil {
		return nil, fmt.Errorf("hold mutator: %w", err)
	}
	return l.Close, nil
}

// liveBatch is how many frames the device gets at a time: a card's usual batch.
const liveBatch = 64

// RunLive sends at least n packets of so many bytes through a device of the calling thread's network namespace, on the core that it is called on: the
// kernel passes frames of a page pool to the device, as a forwarding driver does.
func (m *Mutator) RunLive(ifindex int, size int, n uint32) error {
	frame := make([]byte, max(size, len(m.frame)))
	copy(frame, m.frame)
	_, err := m.mutate.Run(&ebpf.RunOptions{
		Data: frame, Repeat: n, BatchSize: liveBatch, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES,
		Context: xdpContext{DataEnd: uint32(len(frame)), IngressIfindex: uint32(ifindex)},
	})
	if err != nil {
		return fmt.Errorf("run mutator with live frames: %w", err)
	}
	return nil
}

// Pass is the program that lets everything pass.
func (m *Mutator) Pass() (*ebpf.Program, error) {
	p := m.coll.Programs["pass"]
	if p == nil {
		return nil, fmt.Errorf("find pass: %w", ErrTarget)
	}
	return p, nil
}
