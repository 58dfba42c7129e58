// Package witness is an algorithm for tests: it counts every packet that the chain shows it, in counters, in a tally and
// in a shared register array.
package witness

import (
	"fmt"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
)

//go:generate ../../../.ci/bpf2go -type witness_count Witness witness.bpf.c

// Options of a witness.
type Options struct {
	Clock bool   // read the clock, so that later algorithms use that reading
	Port  uint16 // UDP destination port of the packets to count apart
	Spin  uint32 // how often to read the clock before counting, at most 20,000: some 30 ns each
}

// Object makes a witness for a chain.
func Object(name string, opts Options) (loader.Object, error) {
	spec, err := LoadWitness()
	if err != nil {
		return loader.Object{}, fmt.Errorf("read witness: %w", err)
	}
	for name, v := range map[string]any{"witness_clock": opts.Clock, "witness_port": opts.Port, "witness_spin": opts.Spin} {
		if err := maps.SetConstant(spec, name, v); err != nil {
			return loader.Object{}, err
		}
	}
	return loader.Object{Name: name, Spec: spec}, nil
}

// Count is what a witness saw in a window, three times over.
type Count struct {
	Packets, Bytes, Port uint64
	Tally, Shared        uint64 // packets, too
}

// Add another window.
func (c *Count) Add(o Count) {
	c.Packets += o.Packets
	c.Bytes += o.Bytes
	c.Port += o.Port
	c.Tally += o.Tally
	c.Shared += o.Shared
}

// Read reads a closed bank and resets it.
func Read(set *maps.Set, bank int) (Count, error) {
	var words [3][]uint64
	for i, name := range []string{"witness_counts", "witness_tally", "witness_shared"} {
		array, err := set.Array(name)
		if err != nil {
			return Count{}, err
		}
		if words[i], err = array.ReadReset(bank, nil); err != nil {
			return Count{}, err
		}
	}
	c := Count{Packets: words[0][WitnessWitnessCountWITNESS_PACKETS], Bytes: words[0][WitnessWitnessCountWITNESS_BYTES],
		Port: words[0][WitnessWitnessCountWITNESS_PORT]}
	for _, n := range words[1] {
		c.Tally += n
	}
	for _, n := range words[2] {
		c.Shared += n
	}
	return c, nil
}
