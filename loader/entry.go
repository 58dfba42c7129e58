package loader

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// EntryConfig holds the constants of one interface and hook.
type EntryConfig struct {
	Kind    Kind
	IfIndex int
	L3Only  bool
	Egress  bool
	Frags   bool                 // buffers may have fragments (xdp.frags) and their length can be asked for: Linux 5.18
	MTU     int                  // XDP in generic mode: IP bytes above which a buffer is an aggregate; 0: never
	Carry   chain.ChainCarryForm // TC egress: the form of the words that are written for the trace point at the start of transmission
	Replay  bool                 // frames of a capture, whose timestamps are the clock
}

// Entry returns the chain's entry program for an interface. Interfaces of the same kind share it: it is proven and loaded once.
// The caller closes what it is given.
func (i *Instance) Entry(cfg EntryConfig) (*ebpf.Program, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.reach(cfg.Kind); err != nil {
		return nil, fmt.Errorf("load entry program: %w", err)
	}
	if err := i.serve(cfg.Kind); err != nil {
		return nil, err
	}
	kind := cfg
	kind.IfIndex = 0 // the kernel provides each packet's
	p := i.entries[kind]
	if p == nil {
		if err := i.interrupted("entry program"); err != nil {
			return nil, err
		}
		var err error
		load := i.loadEntry
		if i.pool != nil {
			load = i.gateEntry
		}
		if p, err = load(cfg); err != nil {
			return nil, err
		}
		i.entries[kind] = p
	}
	if err := i.interrupted("entry program"); err != nil { // verifying may have taken long
		return nil, err
	}
	own, err := p.Clone()
	if err != nil {
		return nil, fmt.Errorf("share entry program: %w", privilege.Explain(err))
	}
	return own, nil
}

// serve loads the programs of a kind of hook before its first packet.
func (i *Instance) serve(kind Kind) error {
	if i.kinds[kind] {
		return nil
	}
	if err := i.complete(i.loaded, kind); err != nil {
		return err
	}
	if err := i.install(i.loaded); err != nil {
		return err
	}
	i.kinds[kind] = true
	return nil
}

func (i *Instance) loadEntry(cfg EntryConfig) (*ebpf.Program, error) {
	i.progress("the parser for "+cfg.Kind.String(), len(i.loaded), len(i.loaded))
	spec, err := i.chain.Whole()
	if err == nil {
		err = i.configureEntry(spec, cfg)
	}
	if err == nil {
		err = i.specialize(spec)
	}
	if err != nil {
		return nil, fmt.Errorf("load entry program: %w", err)
	}
	name := entryName(cfg.Kind)
	removePrograms(spec, func(p *ebpf.ProgramSpec) bool { return p.Type != cfg.Kind.program() })
	if err := prove(chainName, spec, i.opts.Proven); err != nil {
		return nil, err
	}
	loosen(spec, i.opts.Loose)
	if err := i.adapt(spec); err != nil {
		return nil, fmt.Errorf("load entry program: %w", err)
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: i.replacements(chainName, spec)})
	if err != nil {
		return nil, fmt.Errorf("load entry program: %w", Explain(chainName, err))
	}
	defer coll.Close()
	if m := coll.DetachMap(looseMap); m != nil {
		i.looseEntry, i.looseConfig = m, cfg
	}
	if err := i.closeUnneeded(coll); err != nil {
		return nil, fmt.Errorf("load entry program: %w", err)
	}
	return coll.DetachProgram(name), nil
}

func entryName(kind Kind) string {
	if kind == TC {
		return "chain_tc_entry"
	}
	return "chain_xdp_entry"
}

// reach refuses algorithms that need packet data which an entry program of this kind cannot read on this kernel.
func (i *Instance) reach(kind Kind) error {
	for _, m := range i.loaded {
		if kind != XDP || m.object.Needs&xmaps.NeedQName == 0 {
			continue
		}
		if err := kernel.HaveXDPFrags(); err != nil { // the same release added bpf_xdp_load_bytes
			return fmt.Errorf("%w: DNS names are out of reach of XDP before Linux 5.18 (%w); take --hook tc", kernel.ErrUnsupported, err)
		}
	}
	return nil
}

func (i *Instance) configureEntry(spec *ebpf.CollectionSpec, cfg EntryConfig) error {
	if err := i.setCommon(spec); err != nil {
		return err
	}
	constants := map[string]any{
		"entry_replay":  cfg.Replay,
		"entry_l3_only": cfg.L3Only,
		"entry_egress":  cfg.Egress,
		"entry_frags":   cfg.Frags && kernel.HaveXDPFrags() == nil,
		"entry_load":    kernel.HaveXDPFrags() == nil, // the same release added bpf_xdp_load_bytes
		"entry_carry":   uint8(cfg.Carry),
		"entry_mtu":     uint32(cfg.MTU),
		nextSlot:        uint32(0),
	}
	if i.opts.Fixed {
		if len(i.entries) == 0 {
			i.parses = needsOf(i.loaded)
		}
		constants["parse_needs"] = uint32(i.parses)
	}
	for name, v := range constants {
		if err := xmaps.SetConstant(spec, name, v); err != nil {
			return err
		}
	}
	return nil
}

// removePrograms drops the programs that will not be run, and with them the maps that only they use.
func removePrograms(spec *ebpf.CollectionSpec, unwanted func(*ebpf.ProgramSpec) bool) {
	for name, p := range spec.Programs {
		if unwanted(p) {
			delete(spec.Programs, name)
		}
	}
}

// adaptToKernel drops what an older kernel would refuse although the programs run without it.
func adaptToKernel(spec *ebpf.CollectionSpec) {
	if kernel.HaveXDPFrags() == nil {
		return
	}
	for _, p := range spec.Programs {
		p.Flags &^= unix.BPF_F_XDP_HAS_FRAGS
	}
}
