package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// Register is a register array.
type Register struct {
	Name    string // without its control's path: register names are one program's
	Path    string
	At      syntax.Pos
	Width   int // bits of a word
	Words   int // 1, or 2 for a pair
	Entries int
	Data    []uint64 // element i has Data[Words*i:], first field first
	Initial []uint64
	typ     *typ
	index   *typ
	last    uint64 // pass that touched it
	by      syntax.Pos
	actions int
	sw      *Switch
	filter  *Lpf // whose array it is; nil: it is a register
}

func newRegister(s *scope, i *syntax.Instance) any {
	arguments(i, 2, 2)
	r := &Register{Name: i.Name, Path: s.path + i.Name, At: i.Pos, typ: s.typeOf(i.Type.Args[0]), index: s.scalarType(i.Type.Args[1])}
	r.Entries = s.positive(i.Args[0], 1<<24)
	if r.index.width < 32 && r.Entries > 1<<r.index.width {
		syntax.Throw(i.Pos, "an index of %d bits does not reach %d entries", r.index.width, r.Entries)
	}
	first := s.expr(i.Args[1])
	word := r.typ
	r.Words = 1
	switch {
	case r.typ.class == classStruct && len(r.typ.fields) == 2 && same(r.typ.fields[0].typ, r.typ.fields[1].typ):
		word, r.Words = r.typ.fields[0].typ, 2
		if len(first.elems) != 2 {
			syntax.Throw(i.Pos, "a pair begins with two values")
		}
		r.Initial = []uint64{initial(first.elems[0], word), initial(first.elems[1], word)}
	case r.typ.class == classBits:
		r.Initial = []uint64{initial(first, word)}
	default:
		syntax.Throw(i.Pos, "an element of %s: a register has 8, 16 or 32 bits, or a pair of those", r.typ)
	}
	r.Width = word.width
	if word.class != classBits || r.Width != 8 && r.Width != 16 && r.Width != 32 {
		syntax.Throw(i.Pos, "an element of %s: a register has 8, 16 or 32 bits, or a pair of those", r.typ)
	}
	r.Data = make([]uint64, r.Words*r.Entries)
	r.Reset(0, r.Entries)
	r.sw = switchOf(s)
	r.sw.Registers = append(r.sw.Registers, r)
	return r
}

func initial(x expr, t *typ) uint64 {
	x = x.as(t)
	if !x.con {
		syntax.Throw(x.at, "a register begins with a constant")
	}
	return uint64(x.val) & mask(t.width)
}

// Reset sets entries from, to, and not including to, back to what they began with.
func (r *Register) Reset(from, to int) {
	for i := from; i < to; i++ {
		copy(r.Data[i*r.Words:], r.Initial)
	}
	if r.filter != nil {
		clear(r.filter.last[from:to])
		clear(r.filter.value[from:to])
	}
}

func (*Register) call(_ *scope, e *syntax.Call, method string) expr {
	syntax.Throw(e.Pos, "Register.%s is outside of the model: use a RegisterAction", method)
	return expr{}
}

// registerAction is one thing that a register's stateful ALU does.
type registerAction struct {
	reg      *Register
	out      *place // nil: no output
	typ      *typ   // of the output
	mem, alu []*place
	body     step
}

func newRegisterAction(s *scope, i *syntax.Instance) any {
	arguments(i, 3, 1)
	n, ok := i.Args[0].(*syntax.Name)
	if !ok {
		syntax.Throw(i.Pos, "a RegisterAction of a register that has a name")
	}
	r, ok := s.must(n.Pos, n.ID).(*Register)
	if !ok {
		syntax.Throw(n.Pos, "%s is no register", n.ID)
	}
	if r.actions++; r.actions > 4 {
		syntax.Throw(i.Pos, "a fifth RegisterAction of %s: a stateful ALU has four", r.Name)
	}
	if !same(s.typeOf(i.Type.Args[0]), r.typ) || !same(s.typeOf(i.Type.Args[1]), r.index) {
		syntax.Throw(i.Pos, "the types of %s are not those of its register %s", i.Name, r.Name)
	}
	if len(i.Methods) != 1 || i.Methods[0].Name != "apply" {
		syntax.Throw(i.Pos, "a RegisterAction has the one method apply")
	}
	a := &registerAction{reg: r, typ: s.typeOf(i.Type.Args[2])}
	a.compile(s, i.Methods[0])
	return a
}

func (a *registerAction) call(s *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "execute")
	at, index := e.Pos, s.oneIndex(e, a.reg.index).eval
	x := expr{at: at, typ: a.typ, eval: func(m *machine) (uint64, uint64) { return a.execute(m, at, index) }}
	return x
}

// access is the one that a packet has in a pass, and the element that it is of.
func (r *Register) access(m *machine, at syntax.Pos, index eval) (element int, ok bool) {
	if m.taint > 0 {
		m.effect(at, "register "+r.Name)
	}
	if r.last == m.pass {
		m.fail(at, "a second access to register %s; the first one is at %s", r.Name, r.by)
		return 0, false
	}
	r.last, r.by = m.pass, at
	r.sw.result.Touched++
	i, u := index(m)
	if u != 0 || i >= uint64(r.Entries) {
		m.fail(at, "index %d of register %s, which has %d entries (undefined bits %#x)", i, r.Name, r.Entries, u)
		return 0, false
	}
	return int(i), true
}

// execute reads, computes and writes one element. A packet may do so once for each register and pass.
func (a *registerAction) execute(m *machine, at syntax.Pos, index eval) (val, undef uint64) {
	r := a.reg
	i, ok := r.access(m, at, index)
	if !ok {
		return 0, 0
	}
	words := r.Data[i*r.Words : (i+1)*r.Words]
	for n, w := range words {
		m.set(a.mem[n].slot, w, 0)
		m.set(a.alu[n].slot, w, 0)
	}
	if a.out != nil {
		m.set(a.out.slot, 0, mask(a.typ.width))
	}
	a.body(m)
	for n := range words {
		if m.cells[a.alu[n].slot].undef != 0 {
			m.fail(at, "an undefined value is written to register %s", r.Name)
		}
		words[n] = m.cells[a.alu[n].slot].val
	}
	if a.out == nil {
		return 0, mask(a.typ.width)
	}
	return m.cells[a.out.slot].val, m.cells[a.out.slot].undef
}
