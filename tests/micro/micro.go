// Package micro holds the benchmark's reference programs: algorithms that do one thing, and what one would write first on a host.
package micro

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
)

//go:generate ../../.ci/bpf2go Micro micro.bpf.c

// Spec is the object with the one algorithm that is named, and the maps that it uses.
func Spec(name string) (*ebpf.CollectionSpec, error) {
	spec, err := LoadMicro()
	if err != nil {
		return nil, fmt.Errorf("read yardsticks: %w", err)
	}
	used := map[string]bool{}
	for program, ps := range spec.Programs {
		if program != name+"_xdp" && program != name+"_tc" {
			delete(spec.Programs, program)
			continue
		}
		for _, ins := range ps.Instructions {
			used[ins.Reference()] = true
		}
	}
	if len(spec.Programs) != 2 {
		return nil, fmt.Errorf("find yardstick %s: no such programs", name)
	}
	for m := range spec.Maps {
		if !used[m] && !strings.HasPrefix(m, ".") {
			delete(spec.Maps, m)
		}
	}
	return spec, nil
}
