package state

import (
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// Prune forgets what the current function and its callers no longer read.
func (s *State) Prune(p *code.Program) {
	g := p.Funcs[p.Insns[s.PC].Fn].Graph
	now := g.Live[s.PC-g.Start]
	for r := range s.Regs[:10] {
		if now.Regs&(1<<r) == 0 {
			s.Regs[r] = value.Value{}
		}
	}
	top := len(s.Frames) - 1
	s.Frames[top].Stack = keepCells(s.Frames[top].Stack, now.Slots)
	for d := top; d > 0; d-- {
		back := s.Frames[d].Back
		caller := p.Funcs[p.Insns[back].Fn].Graph
		after := caller.Live[back-caller.Start]
		s.Frames[d-1].Stack = keepCells(s.Frames[d-1].Stack, after.Slots)
		s.Frames[d].Saved = keepSaved(s.Frames[d].Saved, after.Regs)
	}
}

// keepSaved drops registers of a caller that are not live when it continues.
func keepSaved(saved *[10]value.Value, regs uint16) *[10]value.Value {
	out := *saved
	for r := 6; r < 10; r++ {
		if regs&(1<<r) == 0 {
			out[r] = value.Value{}
		}
	}
	if out == *saved {
		return saved
	}
	return &out
}

// keepCells drops cells that lie in words that are not live.
func keepCells(m value.Memory, slots uint64) value.Memory {
	dead := func(c value.Cell) bool { return code.SlotsOf(c.Off, c.Size)&slots == 0 }
	if !slices.ContainsFunc(m, dead) {
		return m
	}
	return slices.DeleteFunc(slices.Clone(m), dead)
}
