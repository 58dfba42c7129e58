// Package state is all that the proof knows at one instruction on some paths.
package state

import (
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// Frame is one active function.
type Frame struct {
	Stack value.Memory
	Saved *[10]value.Value // the caller's r1 to r9; never changed in place, nil in the first frame
	Back  int              // its caller's next instruction
	Loop  bool             // a callback: its caller repeats the call
}

// State is all that the proof knows at one instruction on some paths.
type State struct {
	PC      int
	Regs    [11]value.Value
	Frames  []Frame        // the last is the current one
	Scratch []value.Memory // of every scratch map, in the order of machine.scratch
	Facts   expr.Facts

	Top     int          // latest stage that was touched; -1: none
	Access  []Access     // to arrays of that stage, and pointers got for later ones
	Touched declared.Set // on some path
	Failed  declared.Set // arrays with a violation on some path, which is reported once
	Regions []Region     // branches whose outcome what follows depends on
	Control value.Taint  // of all regions
	Ended   []Ended      // regions whose flow is still to be applied; empty while an instruction is interpreted
	Outside value.Taint  // of what the path has written into the packet and other memory that is not followed
}

// Clone shares what is never changed in place.
func (s *State) Clone() *State {
	c := *s
	c.Frames = slices.Clone(s.Frames)
	c.Scratch = slices.Clone(s.Scratch)
	c.Access = slices.Clone(s.Access)
	c.Regions = slices.Clone(s.Regions)
	return &c
}

// Depth is the number of calls that the current function is nested in.
func (s *State) Depth() int { return len(s.Frames) - 1 }

// ReplacePointer sets what all copies of the pointer with this NULL number have become.
func (s *State) ReplacePointer(null uint32, with func(value.Value) value.Value) {
	concerns := func(v value.Value) bool { return v.Null == null && v.IsPointer() }
	change := func(v *value.Value) {
		if concerns(*v) {
			*v = with(*v)
		}
	}
	for i := range s.Regs {
		change(&s.Regs[i])
	}
	for d := range s.Frames {
		fr := &s.Frames[d]
		if d > 0 && slices.ContainsFunc(fr.Saved[:], concerns) {
			saved := *fr.Saved
			for i := range saved {
				change(&saved[i])
			}
			fr.Saved = &saved
		}
		if slices.ContainsFunc(fr.Stack, func(c value.Cell) bool { return concerns(c.V) }) {
			fr.Stack = slices.Clone(fr.Stack)
			for i := range fr.Stack {
				change(&fr.Stack[i].V)
			}
		}
	}
}

// Reach is the range of offsets that a pointer may have, as signed numbers.
func (s *State) Reach(ptr value.Value) (lo, hi int) {
	const far = 1 << 30 // no map value is larger
	if ptr.N == nil {
		return -far, far
	}
	from, to := s.Facts.SpanOf(ptr.N).Signed()
	return int(max(from, -far)), int(min(to, far))
}
