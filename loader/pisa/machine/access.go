package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// touch is one load, store or atomic operation through a pointer to an element.
type touch struct {
	pc          int
	read, write bool
	off, size   int
	value       value.Taint // of the written value
}

func (t touch) bytes() uint8 {
	if t.off < 0 || t.off+t.size > 8 {
		return 0xff
	}
	return uint8(1<<t.size-1) << t.off
}

// openAccess counts a lookup and returns its number on this path.
func (m *Machine) openAccess(s *state.State, obj int32) uint8 {
	if m.env.Arrays[obj].Last < s.Top {
		return 0
	}
	a := s.AccessTo(obj)
	if a == nil {
		s.Access = append(s.Access, state.Access{Array: obj, First: -1})
		slices.SortFunc(s.Access, func(a, b state.Access) int { return int(a.Array - b.Array) })
		a = s.AccessTo(obj)
	}
	a.Lookups = min(a.Lookups+1, state.ManyLookups+1)
	return a.Lookups - 1
}

// single finds which of a map's arrays an access is to. The offset in the instruction must decide it: the proof treats them as separate
// arrays, not as elements of one.
func (m *Machine) single(s *state.State, ptr value.Value, size int) value.Value {
	if ptr.Form != value.FormElement || m.env.Arrays[ptr.Obj].Beside == 1 {
		return ptr
	}
	arr := m.env.Arrays[ptr.Obj]
	lo, hi := s.Reach(ptr)
	at := lo / arr.Width
	if lo != hi || lo < 0 || at >= arr.Beside || lo+size > (at+1)*arr.Width {
		m.fail(s.PC, arr, 2, rule.Unfollowed, "map %s holds several arrays, and which of them is touched cannot be determined", arr.Map)
		at, lo = 0, 0
	}
	ptr.Obj += int32(at)
	ptr.N = m.nodes.Number(uint64(lo - at*arr.Width))
	return ptr
}

// touchElement proves rules 1, 2 and 4 of one touch.
func (m *Machine) touchElement(s *state.State, ptr value.Value, t touch) {
	arr := m.env.Arrays[ptr.Obj]
	m.used(ptr.Obj, t.read, t.write)
	if s.Failed.Meets(arr.Bit) {
		return
	}
	a := s.AccessTo(ptr.Obj)
	m.trace.Touch(ptr, t.read, t.write, a == nil || !a.Touched, t.value, s.Control)
	before := m.failures
	m.refuseAnswer(s, ptr.T.With(t.value).With(s.Control).From, declared.Set{}, "an access to "+arr.Name)
	if arr.Stage < s.Top {
		m.outOfOrder(s, arr, t)
	} else {
		m.checkFeed(s, arr, ptr.T.With(t.value), t.pc)
		m.checkSingle(s, arr, ptr, t)
	}
	if m.failures > before {
		s.Failed = s.Failed.Or(arr.Bit)
	}
	s.Touched = s.Touched.Or(arr.Bit)
}

func (m *Machine) outOfOrder(s *state.State, arr *declared.Array, t touch) {
	later := m.env.OfStage(s.Top, s.Touched)
	if s.Touched.Meets(arr.Bit) {
		m.fail(t.pc, arr, 2, rule.LateAccess, "its read-modify-write (stage %d) continues after %s of stage %d was touched",
			arr.Stage, later, s.Top)
		return
	}
	m.fail(t.pc, arr, 1, rule.StageOrder, "it is in stage %d and is touched after %s of stage %d", arr.Stage, later, s.Top)
}

// checkFeed: a value that is read in a stage can be used in later stages only, not in the same one.
func (m *Machine) checkFeed(s *state.State, arr *declared.Array, t value.Taint, pc int) {
	feeding := t.With(s.Control).From.And(m.env.Stages[arr.Stage]).Without(arr.Bit)
	if !feeding.Empty() {
		m.fail(pc, arr, 1, rule.SameStage, "the access depends on what was read from %s of the same stage %d",
			m.env.Names(feeding), arr.Stage)
	}
}

func (m *Machine) checkSingle(s *state.State, arr *declared.Array, ptr value.Value, t touch) {
	if ptr.Lookup >= state.ManyLookups {
		m.fail(t.pc, arr, 2, rule.SecondAccess, "more than %d elements of it were looked up on one path", state.ManyLookups)
		return
	}
	m.enterStage(s, arr.Stage)
	a := s.AccessTo(ptr.Obj)
	if a == nil {
		s.Access = append(s.Access, state.Access{Array: ptr.Obj, First: -1})
		slices.SortFunc(s.Access, func(a, b state.Access) int { return int(a.Array - b.Array) })
		a = s.AccessTo(ptr.Obj)
	}
	if !a.Touched {
		a.Touched, a.Lookup, a.First = true, ptr.Lookup, int32(t.pc)
		if !slices.Contains(m.sites[ptr.Obj], a.First) {
			m.sites[ptr.Obj] = append(m.sites[ptr.Obj], a.First)
		}
	}
	switch {
	case a.Lookup != ptr.Lookup && int(a.First) == t.pc:
		m.fail(t.pc, arr, 2, rule.SecondAccess, "an element is touched in every round of a loop")
	case a.Lookup != ptr.Lookup:
		m.fail(t.pc, arr, 2, rule.SecondAccess, "a second element is touched; the first was at %s", m.Prog.Where(int(a.First)))
	case a.Written&t.bytes() != 0 && t.write:
		m.fail(t.pc, arr, 2, rule.SecondAccess, "the same word is written twice")
	case a.Written&t.bytes() != 0:
		m.fail(t.pc, arr, 2, rule.SecondAccess, "a word is read after it was written")
	case t.write:
		a.Written |= t.bytes()
		m.checkUpdate(s, arr, a, t)
	}
}

// enterStage ends the accesses of earlier stages. The lookups of a map are counted as long as one of its arrays may be touched.
func (m *Machine) enterStage(s *state.State, stage int) {
	if stage <= s.Top {
		return
	}
	s.Top = stage
	s.Access = slices.DeleteFunc(s.Access, func(a state.Access) bool { return m.env.Arrays[a.Array].Last < stage })
}

// checkUpdate checks the limits of a switch's stateful unit between reading and writing a word.
func (m *Machine) checkUpdate(s *state.State, arr *declared.Array, a *state.Access, t touch) {
	own := m.conditionsOf(arr, a)
	switch {
	case len(a.Tests) > state.Conditions:
		m.fail(t.pc, arr, 4, rule.Conditions, "the write depends on %d or more conditions since the element was first touched: %s",
			len(a.Tests), m.places(a.Tests))
	case len(own) > state.Conditions:
		m.fail(t.pc, arr, 4, rule.Conditions, "the writes of one read-modify-write depend on %d or more conditions on the element: %s",
			len(own), m.places(own))
	case t.value.Product.Or(s.Control.Product).Meets(arr.Bit) && !arr.LowPass:
		m.fail(t.pc, arr, 4, rule.Arithmetic, "what is written depends on a product or quotient of what was read")
	}
}

// conditionsOf adds this path's conditions on the element to those of other paths that began with the same
// touch: they are branches of one operation. A condition that the compiler has duplicated counts once.
func (m *Machine) conditionsOf(arr *declared.Array, a *state.Access) []int32 {
	key := updateKey{arr.Bit, a.First}
	all := m.updates[key]
	for _, pc := range a.Own {
		same := func(other int32) bool { return m.Prog.SameCondition(int(pc), int(other)) }
		if !slices.ContainsFunc(all, same) {
			all = append(all, pc)
		}
	}
	m.updates[key] = all
	return all
}

type updateKey struct {
	bit   declared.Set
	first int32
}

func (m *Machine) places(pcs []int32) string {
	var out []string
	for _, pc := range pcs {
		if place := m.Prog.Where(int(pc)); !slices.Contains(out, place) {
			out = append(out, place)
		}
	}
	return strings.Join(out, ", ")
}

// fail records a violation; of each kind, a program's first one only.
func (m *Machine) fail(pc int, arr *declared.Array, which int, code rule.Code, format string, args ...any) {
	m.failures++
	name := ""
	if arr != nil {
		name = arr.Name
	}
	for _, v := range m.Found {
		if v.Code == code && v.Map == name {
			return
		}
	}
	m.Found = append(m.Found, rule.Violation{
		Rule: which, Code: code, Program: m.Prog.Name, Map: name, Insn: m.Prog.Insns[pc].Raw,
		Source: m.Prog.Source(pc), Reason: fmt.Sprintf(format, args...),
	})
}
