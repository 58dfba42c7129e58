// Package dctcp gives tests DCTCP (RFC 8257) on kernels that were built without it: as a congestion control of BPF.
package dctcp

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

//go:generate ../../../.ci/bpf2go -no-global-types Dctcp dctcp.bpf.c

// Name of the congestion control, in all network namespaces.
const Name = "xdpmon_dctcp"

// Register makes it known to the kernel until it is closed. Sockets that use it keep it.
func Register() (close func() error, err error) {
	var objects DctcpObjects
	if err := LoadDctcpObjects(&objects, nil); err != nil {
		return nil, fmt.Errorf("load the congestion control: %w", err)
	}
	l, err := link.AttachStructOps(link.StructOpsOptions{Map: objects.Dctcp})
	if errors.Is(err, os.ErrExist) { // another study of this machine has registered it
		return objects.Close, nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("register the congestion control: %w", err), objects.Close())
	}
	return func() error { return errors.Join(l.Close(), objects.Close()) }, nil
}

// Missing reports whether an error means that this kernel has no congestion control of BPF (CONFIG_BPF_JIT, BTF; links of them from 6.4 on).
func Missing(err error) bool { return errors.Is(err, ebpf.ErrNotSupported) }
