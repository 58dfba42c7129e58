package pisa

import "slices"

// region is a branch whose outcome depends on an array, as long as its sides have not met again. What is
// done inside depends on that array too.
type region struct {
	site
	depth  int
	join   int // where its sides meet; -1: at the end of the function
	t      taint
	must   bool   // on all paths that lead here
	before *state // at the branch; nil when there were several
}

// site is a branch, in a function that was called from one place.
type site struct {
	branch int32
	back   int // where the caller goes on
}

// flow is what one side of a branch has changed when they meet: which value is there depends on the branch,
// on either side.
type flow struct {
	regs  map[int]uint16 // by depth
	cells map[place]bool
	used  bool // somebody has relied on it
	late  bool // it has grown since
}

// place is a range of bytes in a memory: a frame's stack, or scratch memory.
type place struct {
	scratch   bool
	obj       int // depth, or number in machine.scratch
	off, size int
}

func (m *machine) enterRegion(s *state, pc int, t taint) {
	t.from &^= m.env.secrets | m.env.chances | packet // refused as such already, and of no interest
	if t.from == 0 {
		return
	}
	g := m.prog.funcs[m.prog.insns[pc].fn].graph
	at := site{int32(pc), s.frames[s.depth()].back}
	r := region{site: at, depth: s.depth(), join: g.joinOf(pc), t: t, must: true}
	i := slices.IndexFunc(s.regions, r.same)
	if i < 0 {
		r.before = s.clone()
		s.regions = append(s.regions, r)
		slices.SortFunc(s.regions, compareRegions)
	} else { // once more in a loop
		m.forgetBefore(s, &s.regions[i])
		s.regions[i].t = s.regions[i].t.with(t)
		s.regions[i].must = true
	}
	s.control = s.control.with(t)
}

func (r region) same(o region) bool { return o.branch == r.branch && o.depth == r.depth }

func compareRegions(a, b region) int {
	if a.depth != b.depth {
		return a.depth - b.depth
	}
	return int(a.branch - b.branch)
}

// leaveRegions ends the regions whose sides meet at pc, or all of the current function.
func (m *machine) leaveRegions(s *state, pc int, all bool) {
	depth := s.depth()
	ends := func(r region) bool { return r.depth == depth && (all || r.join == pc) }
	if !slices.ContainsFunc(s.regions, ends) {
		return
	}
	for _, r := range s.regions {
		if ends(r) {
			m.endRegion(s, r)
			s.ended = append(slices.Clip(s.ended), ended{site: r.site, depth: r.depth, returned: all, t: r.t})
		}
	}
	s.regions = slices.DeleteFunc(s.regions, ends)
	s.sumControl()
}

// ended is a region that the state has left and whose flow it does not carry yet: that waits until the states of all
// sides have arrived where they meet, so that what each of them has changed is known.
type ended struct {
	site
	depth    int
	returned bool // with its function: of the registers r0 alone is left
	t        taint
}

func (e ended) same(o ended) bool {
	return e.site == o.site && e.depth == o.depth && e.returned == o.returned
}

func (s *state) sumControl() {
	s.control = taint{}
	for _, r := range s.regions {
		s.control = s.control.with(r.t)
	}
}

func (m *machine) flowOf(branch site) *flow {
	f, ok := m.flows[branch]
	if !ok {
		f = &flow{regs: make(map[int]uint16), cells: make(map[place]bool)}
		m.flows[branch] = f
	}
	return f
}

// noteReg and noteCell keep account of what is written where there is no state to compare with in the end.
func (m *machine) noteReg(s *state, r int) {
	for _, region := range s.regions {
		if region.before == nil {
			m.flowOf(region.site).addReg(s.depth(), r)
		}
	}
}

func (m *machine) noteCell(s *state, p place) {
	for _, region := range s.regions {
		if region.before == nil {
			m.flowOf(region.site).addCell(p)
		}
	}
}

func (f *flow) addReg(depth, r int) {
	if f.regs[depth]&(1<<r) == 0 {
		f.regs[depth] |= 1 << r
		f.late = f.late || f.used
	}
}

func (f *flow) addCell(p place) {
	if !f.cells[p] {
		f.cells[p] = true
		f.late = f.late || f.used
	}
}

// forgetBefore is for when a region has begun in several ways: what was changed so far is written down.
func (m *machine) forgetBefore(s *state, r *region) {
	if r.before != nil {
		m.changes(s, *r, func(*value, value) {})
		r.before = nil
	}
}

// endRegion: what is as it was at the branch does not depend on it, unless the other side has changed it (applyEnded).
func (m *machine) endRegion(s *state, r region) {
	if r.before != nil {
		m.changes(s, r, func(now *value, before value) {
			now.t.from &= before.t.from
			now.t.product &= before.t.product
			now.why &= before.why
		})
	}
}

// changes writes down what differs from the state at the branch, and calls kept for what does not.
func (m *machine) changes(s *state, r region, kept func(now *value, before value)) {
	f := m.flowOf(r.site)
	if r.depth == s.depth() {
		for i := range s.regs[:10] {
			if s.regs[i].equals(r.before.regs[i]) {
				kept(&s.regs[i], r.before.regs[i])
			} else {
				f.addReg(r.depth, i)
			}
		}
	}
	for d := range min(len(s.frames), len(r.before.frames)) {
		s.frames[d].stack = cellChanges(f, s.frames[d].stack, r.before.frames[d].stack, place{obj: d}, kept)
	}
	for i := range s.scratch {
		s.scratch[i] = cellChanges(f, s.scratch[i], r.before.scratch[i], place{scratch: true, obj: i}, kept)
	}
}

func cellChanges(f *flow, now, before memory, at place, kept func(*value, value)) memory {
	if len(now) == len(before) && (len(now) == 0 || &now[0] == &before[0]) {
		return now
	}
	out, own := now, false
	for r := range ranges(now, before) {
		if r.a < 0 || r.b < 0 || !now[r.a].v.equals(before[r.b].v) {
			at.off, at.size = r.off, r.size
			f.addCell(at)
			continue
		}
		v := now[r.a].v
		kept(&v, before[r.b].v)
		if v == now[r.a].v {
			continue
		}
		if !own {
			out, own = slices.Clone(now), true
		}
		out[r.a].v = v
	}
	return out
}

// applyEnded: what any side of a branch has changed depends on the branch.
func (m *machine) applyEnded(s *state) {
	for _, r := range s.ended {
		m.applyFlow(s, r)
	}
	s.ended = nil
}

func (m *machine) applyFlow(s *state, r ended) {
	f := m.flowOf(r.site)
	f.used = true
	regs := f.regs[r.depth]
	if r.returned {
		regs &= 1
	}
	for i := range s.regs[:10] {
		if regs&(1<<i) != 0 {
			s.regs[i] = s.regs[i].under(r.t)
		}
	}
	for p := range f.cells {
		if p.scratch {
			s.scratch[p.obj] = m.taintCells(s.scratch[p.obj], p, r.t)
		} else if p.obj < len(s.frames) {
			s.frames[p.obj].stack = m.taintCells(s.frames[p.obj].stack, p, r.t)
		}
	}
}

// taintCells makes what is in the place depend on t, whether this path has written it or not.
func (m *machine) taintCells(mem memory, p place, t taint) memory {
	out := mem
	from, to := mem.around(p.off, p.size)
	for i := from; i < to; i++ {
		v := mem[i].v.under(t)
		if v == out[i].v {
			continue
		}
		if &out[0] == &mem[0] {
			out = slices.Clone(mem)
		}
		out[i].v = v
	}
	if !p.scratch {
		return out
	}
	for _, gap := range mem.gaps(p.off, p.size) {
		gap.v = number(m.wordOf(m.scratch[p.obj], gap.off, gap.size), t.with(fromPacket))
		out = out.replace(gap, m.nodes)
	}
	return out
}

// wordOf is what a word of scratch memory holds when the program begins.
func (m *machine) wordOf(obj int32, off, size int) *node {
	key := initialKey{obj, off, size}
	n, ok := m.initial[key]
	if !ok {
		within := below(uint(size) * 8)
		if obj == m.env.vector.array && off == m.env.vector.bank && size == 1 && !m.entry {
			within.hi = 1 // chain.h: CONTROL_BANK is one bit
		}
		n = m.nodes.leaf(within)
		m.initial[key] = n
	}
	return n
}

// lateFlow says whether the run has to be repeated with what it has learned about flows.
func (m *machine) lateFlow() bool {
	again := false
	for _, f := range m.flows {
		again = again || f.late
		f.used, f.late = false, false
	}
	return again
}
