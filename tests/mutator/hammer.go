package mutator

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
)

// HammerOptions describe one sequence of handshakes that all cores work off together, with a virtual clock.
type HammerOptions struct {
	GapNS  uint32 // from packet to packet
	Lag    uint32 // requests from one to its response, on average
	Spread uint32 // log2 of how far the order of the responses is turned over; 2^Spread < Lag
	Flows  uint32 // a power of two
}

// Hammer sends the sequence to an entry program that uses the packets' times.
type Hammer struct {
	*Mutator
	opts  HammerOptions
	entry *ebpf.Program
	input []byte
}

// NewHammer loads the sequence and aims it at an instance.
func NewHammer(inst *loader.Instance, opts HammerOptions) (*Hammer, error) {
	if 1<<opts.Spread >= opts.Lag || bits.OnesCount32(opts.Flows) != 1 {
		return nil, fmt.Errorf("make hammer: spread 2^%d and lag %d, %d flows: the lag must be larger, flows a power of two",
			opts.Spread, opts.Lag, opts.Flows)
	}
	spec, err := LoadMutator()
	if err != nil {
		return nil, fmt.Errorf("read mutator: %w", err)
	}
	constants := map[string]uint32{"hammer_gap": opts.GapNS, "hammer_lag": opts.Lag, "hammer_spread": opts.Spread, "hammer_flows": opts.Flows}
	for name, v := range constants {
		if err := maps.SetConstant(spec, name, v); err != nil {
			return nil, err
		}
	}
	m, err := load(spec, Options{Shape: TCP4, Traffic: Handshakes})
	if err != nil {
		return nil, err
	}
	h := &Hammer{Mutator: m, opts: opts, input: append(make([]byte, metaBytes), m.frame...)}
	if h.entry, err = replayEntry(inst); err != nil {
		h.Close()
		return nil, err
	}
	return h, h.Aim(h.entry)
}

// metaBytes is the size of struct replay_meta.
const metaBytes = 40

// Close frees the programs and maps.
func (h *Hammer) Close() {
	if h.entry != nil {
		h.entry.Close()
	}
	h.Mutator.Close()
}

// replayEntry loads the entry program that a replay uses; unlike loader.Replayer it may run on all cores.
func replayEntry(inst *loader.Instance) (*ebpf.Program, error) {
	spec, err := chain.LoadChain()
	if err != nil {
		return nil, fmt.Errorf("read chain object: %w", err)
	}
	if err := maps.SetConstant(spec, "entry_replay", true); err != nil {
		return nil, err
	}
	for name, p := range spec.Programs {
		if p.Type != ebpf.XDP {
			delete(spec.Programs, name)
		}
	}
	use := map[string]*ebpf.Map{}
	for name, m := range inst.Maps() {
		if short, ok := strings.CutPrefix(name, "chain/"); ok && spec.Maps[short] != nil {
			use[short] = m
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: use})
	if err != nil {
		return nil, fmt.Errorf("load entry program: %w", err)
	}
	defer coll.Close()
	return coll.DetachProgram("chain_xdp_entry"), nil
}

// xdpContext is struct xdp_md in the form of a test run.
type xdpContext struct {
	Data, DataEnd, DataMeta, IngressIfindex, RxQueue, EgressIfindex uint32
}

// Run sends at least n packets of the sequence on the core that it is called on.
func (h *Hammer) Run(n uint32) error {
	input := append([]byte(nil), h.input...)
	verdict, err := h.coll.Programs["hammer"].Run(&ebpf.RunOptions{
		Data: input, Context: xdpContext{Data: metaBytes, DataEnd: uint32(len(input))}, Repeat: n,
	})
	return judge(verdict, err)
}

// Length is the number of packets sent, and about how often the cores alternated (not synchronized).
func (h *Hammer) Length() (packets, turns uint64, err error) {
	var s MutatorHammerSequence
	if err := h.coll.Maps["hammer_sequences"].Lookup(uint32(0), &s); err != nil {
		return 0, 0, fmt.Errorf("read sequence: %w", err)
	}
	return s.Next, s.Turns, nil
}

// Delays are those of all responses among the first n packets, in ns.
func (h *Hammer) Delays(n uint64) []float64 {
	var delays []float64
	for k := uint64(h.opts.Lag); 2*k+1 < n; k++ {
		delays = append(delays, float64((2*(k-h.answered(k))+1)*uint64(h.opts.GapNS)))
	}
	return delays
}

// Bounds of the delays, in ns.
func (h *Hammer) Bounds() (low, high float64) {
	reach := uint64(1) << h.opts.Spread
	gap := uint64(h.opts.GapNS)
	return float64(2 * (uint64(h.opts.Lag) - reach) * gap), float64(2 * (uint64(h.opts.Lag) + reach) * gap)
}

// answered is the function of mutator.bpf.c.
func (h *Hammer) answered(k uint64) uint64 {
	j := k - uint64(h.opts.Lag)
	return j ^ mix(j>>h.opts.Spread)&(1<<h.opts.Spread-1)
}

// mix is hash_mix of bpf/include/hash.h.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}
