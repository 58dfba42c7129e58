package loader

import (
	"github.com/cilium/ebpf"
)

func prove(name string, spec *ebpf.CollectionSpec, unproven bool) error { return nil }
