package loader

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa"
)

// prove refuses a program that breaks the memory rules of a PISA switch; constants and sizes are those it will run with.
func prove(name string, spec *ebpf.CollectionSpec, unproven bool) error {
	if unproven {
		return nil
	}
	if _, err := pisa.Prove(spec); err != nil {
		return fmt.Errorf("prove memory rules of %s: %w", name, err)
	}
	return nil
}
