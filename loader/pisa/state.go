package pisa

import "slices"

// frame is one active function.
type frame struct {
	stack memory
	saved *[10]value // the caller's r1 to r9; never changed in place, nil in the first frame
	back  int        // where its caller goes on
	loop  bool       // a callback: its caller repeats the call
}

// state is all that the proof knows at one instruction on some paths.
type state struct {
	pc      int
	regs    [11]value
	frames  []frame  // the last is the current one
	scratch []memory // of every scratch map, in the order of machine.scratch
	facts   facts

	top     int      // latest stage that was touched; -1: none
	access  []access // to arrays of that stage, and pointers got for later ones
	touched set      // on some path
	failed  set      // arrays with a violation on some path: say it once
	regions []region // branches whose outcome what follows depends on
	control taint    // of all regions
	ended   []ended  // regions whose flow is still to come; empty while an instruction is interpreted
	outside taint    // of what the path has written into the packet and other memory that is not followed
}

// clone shares what is never changed in place.
func (s *state) clone() *state {
	c := *s
	c.frames = slices.Clone(s.frames)
	c.scratch = slices.Clone(s.scratch)
	c.access = slices.Clone(s.access)
	c.regions = slices.Clone(s.regions)
	return &c
}

func (s *state) depth() int { return len(s.frames) - 1 }

// replacePointer sets what all copies of the pointer with this NULL number have become.
func (s *state) replacePointer(null uint32, with func(value) value) {
	concerns := func(v value) bool { return v.null == null && v.isPointer() }
	change := func(v *value) {
		if concerns(*v) {
			*v = with(*v)
		}
	}
	for i := range s.regs {
		change(&s.regs[i])
	}
	for d := range s.frames {
		fr := &s.frames[d]
		if d > 0 && slices.ContainsFunc(fr.saved[:], concerns) {
			saved := *fr.saved
			for i := range saved {
				change(&saved[i])
			}
			fr.saved = &saved
		}
		if slices.ContainsFunc(fr.stack, func(c cell) bool { return concerns(c.v) }) {
			fr.stack = slices.Clone(fr.stack)
			for i := range fr.stack {
				change(&fr.stack[i].v)
			}
		}
	}
}
