package state

import (
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// Region is a branch whose outcome depends on an array, as long as its sides have not met again. What is
// done inside depends on that array too.
type Region struct {
	Site
	Depth  int
	Join   int // where its sides meet; -1: at the end of the function
	T      value.Taint
	Must   bool   // on all paths that lead here
	Before *State // at the branch; nil when there were several
}

// Site is a branch, in a function that was called from one place.
type Site struct {
	Branch int32
	Back   int // the caller's next instruction
}

// Flow is what one side of a branch has changed when they meet: which value is there depends on the branch,
// on either side.
type Flow struct {
	Regs  map[int]uint16 // by depth
	Cells map[Place]bool
	Used  bool // a result depends on it
	Late  bool // it has grown since
}

// Place is a range of bytes in a memory: a frame's stack, or scratch memory.
type Place struct {
	Scratch   bool
	Obj       int // depth, or number in machine.scratch
	Off, Size int
}

// Same reports whether both are of one branch at one depth.
func (r Region) Same(o Region) bool { return o.Branch == r.Branch && o.Depth == r.Depth }

// CompareRegions orders regions by depth and branch.
func CompareRegions(a, b Region) int {
	if a.Depth != b.Depth {
		return a.Depth - b.Depth
	}
	return int(a.Branch - b.Branch)
}

// Ended is a region that the state has left and whose flow it does not carry yet: that waits until the states of all
// sides have arrived where they meet, so that what each of them has changed is known.
type Ended struct {
	Site
	Depth    int
	Returned bool // with its function: of the registers r0 alone is left
	T        value.Taint
}

// Same reports whether both are of one branch and end at the same instruction.
func (e Ended) Same(o Ended) bool {
	return e.Site == o.Site && e.Depth == o.Depth && e.Returned == o.Returned
}

// SumControl is what being here depends on, by all regions.
func (s *State) SumControl() {
	s.Control = value.Taint{}
	for _, r := range s.Regions {
		s.Control = s.Control.With(r.T)
	}
}

// AddReg notes that a register has changed.
func (f *Flow) AddReg(depth, r int) {
	if f.Regs[depth]&(1<<r) == 0 {
		f.Regs[depth] |= 1 << r
		f.Late = f.Late || f.Used
	}
}

// AddCell notes that bytes of a memory have.
func (f *Flow) AddCell(p Place) {
	if !f.Cells[p] {
		f.Cells[p] = true
		f.Late = f.Late || f.Used
	}
}

func cellChanges(f *Flow, now, before value.Memory, at Place, same func(*value.Value, value.Value)) value.Memory {
	if len(now) == len(before) && (len(now) == 0 || &now[0] == &before[0]) {
		return now
	}
	out, own := now, false
	for r := range value.Ranges(now, before) {
		if r.A < 0 || r.B < 0 || !now[r.A].V.Equals(before[r.B].V) {
			at.Off, at.Size = r.Off, r.Size
			f.AddCell(at)
			continue
		}
		v := now[r.A].V
		same(&v, before[r.B].V)
		if v == now[r.A].V {
			continue
		}
		if !own {
			out, own = slices.Clone(now), true
		}
		out[r.A].V = v
	}
	return out
}
