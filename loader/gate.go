package loader

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/loader/share"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// mostGates is how many forms of an entry program a pool has at most: by kind of interface, direction, and what packets carry.
const mostGates = 64

// GateName and the instance's number are the name of an instance's own program, which runs before a shared entry program.
const GateName = "chain_gate_"

// gateEntry is loadEntry for an instance of a pool: the pool's entry program for this kind of interface after a few instructions that write the
// instance's number (share.Number).
func (i *Instance) gateEntry(cfg EntryConfig) (*ebpf.Program, error) {
	kind := cfg
	kind.IfIndex = 0
	defer i.lockPool()()
	gates, err := i.gatesOf(cfg.Kind)
	if err != nil {
		return nil, err
	}
	at, ok := i.pool.entries[kind]
	if !ok {
		at = len(i.pool.entries)
		if at == mostGates {
			return nil, fmt.Errorf("load entry program: %d forms are in use", at)
		}
		p, err := i.loadEntry(cfg)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(gates.Put(uint32(at), p), p.Close()); err != nil {
			return nil, fmt.Errorf("load entry program: %w", err)
		}
		i.pool.entries[kind] = at
	}
	p, err := ebpf.NewProgram(i.gate(cfg, gates, at))
	if err != nil {
		return nil, fmt.Errorf("load entry program: %w", Explain(chainName, err))
	}
	return p, nil
}

func (i *Instance) gatesOf(kind Kind) (*ebpf.Map, error) {
	if m := i.pool.gates[kind]; m != nil {
		return m, nil
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "chain_gates", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: mostGates})
	if err != nil {
		return nil, fmt.Errorf("load entry program: %w", privilege.Explain(err))
	}
	i.pool.gates[kind] = m
	return m, nil
}

// gate is the instance's own program. It names the chain's control word and counters, by which xdpmon recognises its own programs.
func (i *Instance) gate(cfg EntryConfig, gates *ebpf.Map, at int) *ebpf.ProgramSpec {
	pass := int32(2) // XDP_PASS
	if cfg.Kind == TC {
		pass = -1 // TC_ACT_UNSPEC
	}
	spec := &ebpf.ProgramSpec{Name: fmt.Sprintf("%s%d", GateName, i.number), Type: cfg.Kind.program(), License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapPtr(asm.R1, i.shared["chain_control"].FD()),
		asm.LoadMapPtr(asm.R1, i.shared["chain_counters"].FD()),
		asm.StoreImm(asm.R10, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, i.shared[share.Number].FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.StoreImm(asm.R0, share.WordNumber, int64(i.number), asm.Word),
		asm.LoadMem(asm.R1, asm.R0, share.WordCPU, asm.Word),
		asm.Add.Imm(asm.R1, int32(share.Place(uint32(i.number), uint32(xmaps.PossibleCPUs()), 0))),
		asm.StoreMem(asm.R0, share.WordPlace, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.LoadMapPtr(asm.R2, gates.FD()),
		asm.Mov.Imm(asm.R3, int32(at)),
		asm.FnTailCall.Call(),
		asm.Mov.Imm(asm.R0, pass).WithSymbol("out"),
		asm.Return(),
	}}
	entry := i.chain.Spec.Programs[entryName(cfg.Kind)] // the kernel allows tail calls only between programs of one type and with equal properties
	spec.Flags, spec.AttachType = entry.Flags, entry.AttachType
	adaptToKernel(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{spec.Name: spec}})
	return spec
}
