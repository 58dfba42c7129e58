package machine

import (
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

func (m *Machine) enterRegion(s *state.State, pc int, t value.Taint) {
	t.From = t.From.Without(m.env.Secrets.Or(m.env.Chances).Or(declared.Packet)) // these are refused where they decide the branch
	if t.From.Empty() && t.Named.Empty() {
		return
	}
	g := m.Prog.Funcs[m.Prog.Insns[pc].Fn].Graph
	at := state.Site{Branch: int32(pc), Back: s.Frames[s.Depth()].Back}
	r := state.Region{Site: at, Depth: s.Depth(), Join: g.JoinOf(pc), T: t, Must: true}
	i := slices.IndexFunc(s.Regions, r.Same)
	if i < 0 {
		r.Before = s.Clone()
		s.Regions = append(s.Regions, r)
		slices.SortFunc(s.Regions, state.CompareRegions)
	} else { // a further round of a loop
		m.flows.ForgetBefore(s, &s.Regions[i])
		s.Regions[i].T = s.Regions[i].T.With(t)
		s.Regions[i].Must = true
	}
	s.Control = s.Control.With(t)
}

// applyEnded: where the sides of a branch meet, everything that either side has changed depends on the branch.
func (m *Machine) applyEnded(s *state.State) {
	for _, r := range s.Ended {
		m.applyFlow(s, r)
	}
	s.Ended = nil
}

func (m *Machine) applyFlow(s *state.State, r state.Ended) {
	f := m.flows.Of(r.Site)
	f.Used = true
	regs := f.Regs[r.Depth]
	if r.Returned {
		regs &= 1
	}
	for i := range s.Regs[:10] {
		if regs&(1<<i) != 0 {
			s.Regs[i] = s.Regs[i].Under(r.T)
		}
	}
	for p := range f.Cells {
		if p.Scratch {
			s.Scratch[p.Obj] = m.taintCells(s.Scratch[p.Obj], p, r.T)
		} else if p.Obj < len(s.Frames) {
			s.Frames[p.Obj].Stack = m.taintCells(s.Frames[p.Obj].Stack, p, r.T)
		}
	}
}

// taintCells adds t to the taint of a place, whether this path has written it or not.
func (m *Machine) taintCells(mem value.Memory, p state.Place, t value.Taint) value.Memory {
	out := mem
	from, to := mem.Around(p.Off, p.Size)
	for i := from; i < to; i++ {
		v := mem[i].V.Under(t)
		if v == out[i].V {
			continue
		}
		if &out[0] == &mem[0] {
			out = slices.Clone(mem)
		}
		out[i].V = v
	}
	if !p.Scratch {
		return out
	}
	for _, gap := range mem.Gaps(p.Off, p.Size) {
		gap.V = m.firstWord(m.scratch[p.Obj], gap.Off, gap.Size)
		gap.V.T = gap.V.T.With(t)
		out = out.Replace(gap, m.nodes)
	}
	return out
}

// firstWord is the initial value of a word of scratch memory, with its taint.
func (m *Machine) firstWord(obj int32, off, size int) value.Value {
	n := m.wordOf(obj, off, size)
	m.trace.First(n, obj, off, size)
	return value.Number(n, value.FromPacket.With(m.trace.Word(obj, off, size)))
}

// wordOf is the initial value of a word of scratch memory.
func (m *Machine) wordOf(obj int32, off, size int) *expr.Node {
	key := initialKey{obj, off, size}
	n, ok := m.initial[key]
	if !ok {
		within := expr.Below(uint(size) * 8)
		if obj == m.env.Vector.Array && off == m.env.Vector.Bank && size == 1 && !m.entry {
			within.Hi = 1 // chain.h: CONTROL_BANK is one bit
		}
		n = m.nodes.Leaf(within)
		m.initial[key] = n
	}
	return n
}
