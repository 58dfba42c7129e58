package pisa

import (
	"fmt"
	"slices"
	"strings"
)

const (
	manyLookups = 3 // lookups of one array that are told apart on one path
	conditions  = 2 // in one read-modify-write
)

// access is the read-modify-write of one register array on a path, as long as no array of a later stage was
// touched: after that any further access breaks a rule and nothing needs to be remembered.
type access struct {
	array   int32
	lookups uint8 // made on this path
	touched bool
	lookup  uint8   // the one whose pointer was used
	written uint8   // bytes of the element
	first   int32   // instruction that touched it first
	tests   []int32 // branches since, on the path with most of them
	own     []int32 // branches since on a number that depends on the element, on any path
}

// touch is one load, store or atomic operation through a pointer to an element.
type touch struct {
	pc          int
	read, write bool
	off, size   int
	value       taint // of what is written
}

func (t touch) bytes() uint8 {
	if t.off < 0 || t.off+t.size > 8 {
		return 0xff
	}
	return uint8(1<<t.size-1) << t.off
}

func (s *state) accessTo(array int32) *access {
	i := slices.IndexFunc(s.access, func(a access) bool { return a.array == array })
	if i < 0 {
		return nil
	}
	return &s.access[i]
}

// openAccess counts a lookup and returns its number on this path.
func (m *machine) openAccess(s *state, obj int32) uint8 {
	if m.env.arrays[obj].stage < s.top {
		return 0
	}
	a := s.accessTo(obj)
	if a == nil {
		s.access = append(s.access, access{array: obj, first: -1})
		slices.SortFunc(s.access, func(a, b access) int { return int(a.array - b.array) })
		a = s.accessTo(obj)
	}
	a.lookups = min(a.lookups+1, manyLookups+1)
	return a.lookups - 1
}

// touchElement proves rules 1, 2 and 4 of one touch.
func (m *machine) touchElement(s *state, ptr value, t touch) {
	arr := m.env.arrays[ptr.obj]
	m.used(ptr.obj, t.read, t.write)
	if s.failed&arr.bit != 0 {
		return
	}
	before := m.failures
	m.refuseAnswer(s, ptr.t.with(t.value).with(s.control).from, 0, "an access to "+arr.name)
	if arr.stage < s.top {
		m.outOfOrder(s, arr, t)
	} else {
		m.checkFeed(s, arr, ptr.t.with(t.value), t.pc)
		m.checkSingle(s, arr, ptr, t)
	}
	if m.failures > before {
		s.failed |= arr.bit
	}
	s.touched |= arr.bit
}

func (m *machine) outOfOrder(s *state, arr *array, t touch) {
	later := m.env.ofStage(s.top, s.touched)
	if s.touched&arr.bit != 0 {
		m.fail(t.pc, arr, 2, LateAccess, "its read-modify-write (stage %d) goes on after %s of stage %d was touched",
			arr.stage, later, s.top)
		return
	}
	m.fail(t.pc, arr, 1, StageOrder, "it is in stage %d and is touched after %s of stage %d", arr.stage, later, s.top)
}

// checkFeed: what is read in a stage is known behind it, not inside.
func (m *machine) checkFeed(s *state, arr *array, t taint, pc int) {
	feeding := t.with(s.control).from & m.env.stages[arr.stage] &^ arr.bit
	if feeding != 0 {
		m.fail(pc, arr, 1, SameStage, "the access depends on what was read from %s of the same stage %d",
			m.env.names(feeding), arr.stage)
	}
}

func (m *machine) checkSingle(s *state, arr *array, ptr value, t touch) {
	if ptr.lookup >= manyLookups {
		m.fail(t.pc, arr, 2, SecondAccess, "more than %d elements of it were looked up on one path", manyLookups)
		return
	}
	m.enterStage(s, arr.stage)
	a := s.accessTo(ptr.obj)
	if a == nil {
		s.access = append(s.access, access{array: ptr.obj, first: -1})
		slices.SortFunc(s.access, func(a, b access) int { return int(a.array - b.array) })
		a = s.accessTo(ptr.obj)
	}
	if !a.touched {
		a.touched, a.lookup, a.first = true, ptr.lookup, int32(t.pc)
		if !slices.Contains(m.sites[ptr.obj], a.first) {
			m.sites[ptr.obj] = append(m.sites[ptr.obj], a.first)
		}
	}
	switch {
	case a.lookup != ptr.lookup && int(a.first) == t.pc:
		m.fail(t.pc, arr, 2, SecondAccess, "an element is touched in every round of a loop")
	case a.lookup != ptr.lookup:
		m.fail(t.pc, arr, 2, SecondAccess, "a second element is touched; the first was at %s", m.prog.where(int(a.first)))
	case a.written&t.bytes() != 0 && t.write:
		m.fail(t.pc, arr, 2, SecondAccess, "the same word is written twice")
	case a.written&t.bytes() != 0:
		m.fail(t.pc, arr, 2, SecondAccess, "a word is read after it was written")
	case t.write:
		a.written |= t.bytes()
		m.checkUpdate(s, arr, a, t)
	}
}

// enterStage ends what was open in earlier stages.
func (m *machine) enterStage(s *state, stage int) {
	if stage <= s.top {
		return
	}
	s.top = stage
	s.access = slices.DeleteFunc(s.access, func(a access) bool { return m.env.arrays[a.array].stage < stage })
}

// checkUpdate: what a switch's stateful unit can do between reading and writing a word.
func (m *machine) checkUpdate(s *state, arr *array, a *access, t touch) {
	own := m.conditionsOf(arr, a)
	switch {
	case len(a.tests) > conditions:
		m.fail(t.pc, arr, 4, Conditions, "the write is behind %d or more conditions since the element was first touched: %s",
			len(a.tests), m.places(a.tests))
	case len(own) > conditions:
		m.fail(t.pc, arr, 4, Conditions, "the writes of one read-modify-write depend on %d or more conditions on the element: %s",
			len(own), m.places(own))
	case (t.value.product|s.control.product)&arr.bit != 0 && !arr.lowPass:
		m.fail(t.pc, arr, 4, Arithmetic, "what is written depends on a product or quotient of what was read")
	}
}

// conditionsOf adds this path's conditions on the element to those of other paths that began with the same
// touch: they are branches of one operation. A condition that the compiler has duplicated counts once.
func (m *machine) conditionsOf(arr *array, a *access) []int32 {
	key := updateKey{arr.bit, a.first}
	all := m.updates[key]
	for _, pc := range a.own {
		same := func(other int32) bool { return m.prog.sameCondition(int(pc), int(other)) }
		if !slices.ContainsFunc(all, same) {
			all = append(all, pc)
		}
	}
	m.updates[key] = all
	return all
}

type updateKey struct {
	bit   set
	first int32
}

func (p *program) sameCondition(a, b int) bool {
	if a == b {
		return true
	}
	one, other := p.line(a), p.line(b)
	return one != nil && other != nil && *one == *other
}

func (m *machine) places(pcs []int32) string {
	var out []string
	for _, pc := range pcs {
		if place := m.prog.where(int(pc)); !slices.Contains(out, place) {
			out = append(out, place)
		}
	}
	return strings.Join(out, ", ")
}

// countTest notes a branch in every read-modify-write that is under way.
func (s *state) countTest(pc int, t taint, arrays []*array) {
	for i := range s.access {
		a := &s.access[i]
		if !a.touched {
			continue
		}
		if len(a.tests) <= conditions {
			a.tests = append(slices.Clone(a.tests), int32(pc))
		}
		if t.from&arrays[a.array].bit != 0 && !slices.Contains(a.own, int32(pc)) && len(a.own) <= conditions {
			a.own = append(slices.Clone(a.own), int32(pc))
		}
	}
}

// fail records a violation; the first of its kind in a program is kept.
func (m *machine) fail(pc int, arr *array, rule int, code Code, format string, args ...any) {
	m.failures++
	name := ""
	if arr != nil {
		name = arr.name
	}
	for _, v := range m.found {
		if v.Code == code && v.Map == name {
			return
		}
	}
	m.found = append(m.found, Violation{
		Rule: rule, Code: code, Program: m.prog.name, Map: name, Insn: m.prog.insns[pc].raw,
		Source: m.prog.source(pc), Reason: fmt.Sprintf(format, args...),
	})
}
