// Package tap is an algorithm for measurements: it records the estimate of the algorithm before it in the chain for every packet.
package tap

import (
	"fmt"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
)

//go:generate ../../../.ci/bpf2go Tap tap.bpf.c

// Name of the algorithm in a chain.
const Name = "tap"

// Object makes a tap with room for so many packets. It keeps no memory rules: load it with loader.Options.Unproven.
func Object(packets int) (loader.Object, error) {
	spec, err := LoadTap()
	if err != nil {
		return loader.Object{}, fmt.Errorf("read tap: %w", err)
	}
	spec.Maps["tap_said"].MaxEntries = uint32(packets)
	return loader.Object{Name: Name, Spec: spec}, nil
}

// Read returns the recorded estimates, in the order of packets.
func Read(set *maps.Set) ([]uint64, error) {
	choices, err := set.Array("tap_said")
	if err != nil {
		return nil, err
	}
	return choices.Read(0, nil)
}
