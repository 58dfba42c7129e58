// Package enforcer is an algorithm for tests: it decides the same of every packet.
package enforcer

import (
	"fmt"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
)

//go:generate ../../../.ci/bpf2go -type enforcer_count -type verdict Enforcer enforcer.bpf.c

// What it may decide.
const (
	Pass = uint8(EnforcerVerdictVERDICT_PASS)
	Mark = uint8(EnforcerVerdictVERDICT_MARK)
	Drop = uint8(EnforcerVerdictVERDICT_DROP)
)

// Object makes an enforcer for a chain; proto 0 is every packet.
func Object(name string, verdict, proto uint8) (loader.Object, error) {
	spec, err := LoadEnforcer()
	if err != nil {
		return loader.Object{}, fmt.Errorf("read enforcer: %w", err)
	}
	for name, v := range map[string]any{"enforcer_verdict": verdict, "enforcer_proto": proto} {
		if err := maps.SetConstant(spec, name, v); err != nil {
			return loader.Object{}, err
		}
	}
	return loader.Object{Name: name, Spec: spec, Enforces: true}, nil
}

// Seen is how many packets it decided over in a closed bank, which is set back.
func Seen(inst *loader.Instance, name string, bank int) (uint64, error) {
	set, err := inst.Set(name)
	if err != nil {
		return 0, err
	}
	array, err := set.Array("enforcer_counts")
	if err != nil {
		return 0, err
	}
	words, err := array.ReadReset(bank, nil)
	if err != nil {
		return 0, err
	}
	return words[EnforcerEnforcerCountENFORCER_SEEN], nil
}
