package replay

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/xdpmon/xdpmon/loader/namespace"
)

// hold keeps the driver in the kernel's XDP dispatcher, so that batches cost no exchange of it.
//
// A test run with repetitions adds its program to the dispatcher and removes it again, and waits for RCU both
// times: some milliseconds a batch on an idle machine and 50 to 100 on a busy one, where thousands of packets take two. A
// program that is attached somewhere is in the dispatcher already. So it is attached, in generic mode, to the loopback
// interface of a network namespace of its own, which is down and sees no packet.
//
// That takes CAP_SYS_ADMIN and CAP_NET_ADMIN, which a replay does not need otherwise. Without them, or where the kernel
// refuses, the replay is slower and otherwise the same: Slow returns the reason.
func (r *Replayer) hold() {
	if r.driver == nil {
		return
	}
	r.release, r.slow = attachAside(r.driver.Programs[replayDriver])
}

// Slow is the reason why every batch waits for the kernel's XDP dispatcher; nil when none does.
func (r *Replayer) Slow() error { return r.slow }

// attachAside attaches a program in a new network namespace, which exists until undo.
func attachAside(prog *ebpf.Program) (undo func(), err error) {
	ns, err := namespace.New()
	if err != nil {
		return nil, err
	}
	const loopback = 1
	var l link.Link
	err = ns.Run(func() (err error) {
		l, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: loopback, Flags: link.XDPGenericMode})
		return err
	})
	if err != nil {
		ns.Close()
		return nil, fmt.Errorf("attach: %w", err)
	}
	return func() { l.Close(); ns.Close() }, nil
}
