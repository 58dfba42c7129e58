package state

import (
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// Flows are the changes by the sides of every branch of a program.
type Flows map[Site]*Flow

// Leave ends the regions whose sides meet at pc, or all of the current function.
func (fs Flows) Leave(s *State, pc int, all bool) {
	depth := s.Depth()
	ends := func(r Region) bool { return r.Depth == depth && (all || r.Join == pc) }
	if !slices.ContainsFunc(s.Regions, ends) {
		return
	}
	for _, r := range s.Regions {
		if ends(r) {
			fs.end(s, r)
			s.Ended = append(slices.Clip(s.Ended), Ended{Site: r.Site, Depth: r.Depth, Returned: all, T: r.T})
		}
	}
	s.Regions = slices.DeleteFunc(s.Regions, ends)
	s.SumControl()
}

// Of is the flow of a branch.
func (fs Flows) Of(branch Site) *Flow {
	f, ok := fs[branch]
	if !ok {
		f = &Flow{Regs: make(map[int]uint16), Cells: make(map[Place]bool)}
		fs[branch] = f
	}
	return f
}

// NoteReg records a written register, for regions without an initial state to compare with.
func (fs Flows) NoteReg(s *State, r int) {
	for _, region := range s.Regions {
		if region.Before == nil {
			fs.Of(region.Site).AddReg(s.Depth(), r)
		}
	}
}

// NoteCell is NoteReg for cells.
func (fs Flows) NoteCell(s *State, p Place) {
	for _, region := range s.Regions {
		if region.Before == nil {
			fs.Of(region.Site).AddCell(p)
		}
	}
}

// ForgetBefore ends the use of a region's initial state, where several joined states differ in it: the changes so far are recorded explicitly.
func (fs Flows) ForgetBefore(s *State, r *Region) {
	if r.Before != nil {
		fs.changes(s, *r, func(*value.Value, value.Value) {})
		r.Before = nil
	}
}

// end: what is as it was at the branch does not depend on it, unless the other side has changed it (applyEnded).
func (fs Flows) end(s *State, r Region) {
	if r.Before != nil {
		fs.changes(s, r, func(now *value.Value, before value.Value) {
			now.T.From = now.T.From.And(before.T.From)
			now.T.Product = now.T.Product.And(before.T.Product)
			now.T.Named = now.T.Named.And(before.T.Named)
			now.Why = now.Why.And(before.Why)
		})
	}
}

// changes records the differences from the state at the branch, and calls same for equal values.
func (fs Flows) changes(s *State, r Region, same func(now *value.Value, before value.Value)) {
	f := fs.Of(r.Site)
	if r.Depth == s.Depth() {
		for i := range s.Regs[:10] {
			if s.Regs[i].Equals(r.Before.Regs[i]) {
				same(&s.Regs[i], r.Before.Regs[i])
			} else {
				f.AddReg(r.Depth, i)
			}
		}
	}
	for d := range min(len(s.Frames), len(r.Before.Frames)) {
		s.Frames[d].Stack = cellChanges(f, s.Frames[d].Stack, r.Before.Frames[d].Stack, Place{Obj: d}, same)
	}
	for i := range s.Scratch {
		s.Scratch[i] = cellChanges(f, s.Scratch[i], r.Before.Scratch[i], Place{Scratch: true, Obj: i}, same)
	}
}

// Late reports whether the run has to be repeated with the flows that it has found.
func (fs Flows) Late() bool {
	again := false
	for _, f := range fs {
		again = again || f.Late
		f.Used, f.Late = false, false
	}
	return again
}
