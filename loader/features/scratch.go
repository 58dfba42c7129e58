package features

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/namespace"
)

// inScratch runs a probe that must attach something, on the loopback device of a network namespace that exists
// for the time of the probe.
func inScratch(try func(lo int) error) func() kernel.Answer {
	return func() kernel.Answer {
		var result error
		if err := inNewNamespace(func() { result = try(1) }); err != nil {
			return kernel.Answer{State: kernel.Unknown, Detail: fmt.Sprintf("cannot create a network namespace for the probe: %v (needs CAP_SYS_ADMIN)", err)}
		}
		return kernel.Conclude(result)
	}
}

// inNewNamespace runs fn in a network namespace that ends with it.
func inNewNamespace(fn func()) error {
	ns, err := namespace.New()
	if err != nil {
		return err
	}
	defer ns.Close()
	return ns.Run(func() error { fn(); return nil })
}

func tryXDPLink(lo int) error {
	prog, err := ebpf.NewProgram(kernel.Returning(ebpf.XDP, 2))
	if err != nil {
		return err
	}
	defer prog.Close()
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: lo, Flags: link.XDPGenericMode})
	if errors.Is(err, unix.EINVAL) {
		return ebpf.ErrNotSupported
	}
	if err != nil {
		return err
	}
	return l.Close()
}
