package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// Register is a register array.
type Register struct {
	Name    string // without its control's path: register names are unique in a program
	Path    string
	At      syntax.Pos
	Width   int // bits of a word
	Words   int // 1, or 2 for a pair
	Entries int
	Data    []uint64 // element i has Data[Words*i:], first field first
	Initial []uint64
	typ     *lang.Type
	index   *lang.Type
	last    uint64 // last pass that accessed it
	by      syntax.Pos
	actions int
	sw      *Switch
	filter  *Lpf // whose array this is; nil: a register
	uses
}

func newRegister(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 2, 2)
	r := &Register{uses: uses{map[string]bool{}, map[int64]bool{}}, Name: i.Name, Path: s.Path + i.Name, At: i.Pos, typ: s.TypeOf(i.Type.Args[0]), index: s.ScalarType(i.Type.Args[1])}
	r.Entries = s.Positive(i.Args[0], 1<<24)
	if r.index.Width < 32 && r.Entries > 1<<r.index.Width {
		syntax.Throw(i.Pos, "an index of %d bits does not reach %d entries", r.index.Width, r.Entries)
	}
	first := s.Expr(i.Args[1])
	word := r.typ
	r.Words = 1
	switch {
	case r.typ.Class == lang.ClassStruct && len(r.typ.Fields) == 2 && lang.Same(r.typ.Fields[0].Type, r.typ.Fields[1].Type):
		word, r.Words = r.typ.Fields[0].Type, 2
		if len(first.Elems) != 2 {
			syntax.Throw(i.Pos, "a pair is initialized with two values")
		}
		r.Initial = []uint64{initial(first.Elems[0], word), initial(first.Elems[1], word)}
	case r.typ.Class == lang.ClassBits:
		r.Initial = []uint64{initial(first, word)}
	default:
		syntax.Throw(i.Pos, "an element of %s: a register has 8, 16 or 32 bits, or a pair of those", r.typ)
	}
	r.Width = word.Width
	if word.Class != lang.ClassBits || r.Width != 8 && r.Width != 16 && r.Width != 32 {
		syntax.Throw(i.Pos, "an element of %s: a register has 8, 16 or 32 bits, or a pair of those", r.typ)
	}
	r.Data = make([]uint64, r.Words*r.Entries)
	r.Reset(0, r.Entries)
	r.sw = switchOf(s)
	r.fits(r.sw.target)
	r.sw.Registers = append(r.sw.Registers, r)
	return r
}

func initial(x lang.Expr, t *lang.Type) uint64 {
	x = x.As(t)
	if !x.Const {
		syntax.Throw(x.At, "a register is initialized with a constant")
	}
	return uint64(x.Val) & lang.Mask(t.Width)
}

// Reset resets entries from (inclusive) to (exclusive) to their initial values.
func (r *Register) Reset(from, to int) {
	for i := from; i < to; i++ {
		copy(r.Data[i*r.Words:], r.Initial)
	}
	if r.filter != nil {
		clear(r.filter.last[from:to])
		clear(r.filter.value[from:to])
	}
}

// Call compiles a method.
func (*Register) Call(_ *lang.Scope, e *syntax.Call, method string) lang.Expr {
	syntax.Throw(e.Pos, "Register.%s is outside of the model: use a RegisterAction", method)
	return lang.Expr{}
}

// registerAction is one action of a register's stateful ALU.
type registerAction struct {
	reg      *Register
	out      *lang.Place // nil: no output
	typ      *lang.Type  // of the output
	mem, alu []*lang.Place
	body     lang.Step
}

func newRegisterAction(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 3, 1)
	n, ok := i.Args[0].(*syntax.Name)
	if !ok {
		syntax.Throw(i.Pos, "a RegisterAction of a register that has a name")
	}
	r, ok := s.Must(n.Pos, n.ID).(*Register)
	if !ok {
		syntax.Throw(n.Pos, "%s is no register", n.ID)
	}
	if r.actions++; r.actions > 4 {
		syntax.Throw(i.Pos, "a fifth RegisterAction of %s: a stateful ALU has four", r.Name)
	}
	if !lang.Same(s.TypeOf(i.Type.Args[0]), r.typ) || !lang.Same(s.TypeOf(i.Type.Args[1]), r.index) {
		syntax.Throw(i.Pos, "the types of %s are not those of its register %s", i.Name, r.Name)
	}
	if len(i.Methods) != 1 || i.Methods[0].Name != "apply" {
		syntax.Throw(i.Pos, "a RegisterAction has the one method apply")
	}
	a := &registerAction{reg: r, typ: s.TypeOf(i.Type.Args[2])}
	a.compile(s, i.Methods[0])
	return a
}

func (a *registerAction) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "execute")
	at, index := e.Pos, oneIndex(s, e, a.reg.index).Eval
	x := lang.Expr{At: at, Type: a.typ, Eval: func(m *lang.Machine) (uint64, uint64) { return a.execute(m, at, index) }}
	return x
}

// access checks a packet's only access in a pass, and returns its element.
func (r *Register) access(m *lang.Machine, at syntax.Pos, index lang.Eval) (element int, ok bool) {
	if m.Taint > 0 {
		m.Effect(at, "register "+r.Name)
	}
	if r.last == m.Pass {
		m.Fail(at, "a second access to register %s; the first one is at %s", r.Name, r.by)
		return 0, false
	}
	r.last, r.by = m.Pass, at
	r.sw.result.Touched++
	i, u := index(m)
	if u != 0 || i >= uint64(r.Entries) {
		m.Fail(at, "index %d of register %s, which has %d entries (undefined bits %#x)", i, r.Name, r.Entries, u)
		return 0, false
	}
	return int(i), true
}

// execute reads, computes and writes one element. A packet may do so once per register and pass.
func (a *registerAction) execute(m *lang.Machine, at syntax.Pos, index lang.Eval) (val, undef uint64) {
	r := a.reg
	i, ok := r.access(m, at, index)
	if !ok {
		return 0, 0
	}
	words := r.Data[i*r.Words : (i+1)*r.Words]
	for n, w := range words {
		m.Set(a.mem[n].Slot, w, 0)
		m.Set(a.alu[n].Slot, w, 0)
	}
	if a.out != nil {
		m.Set(a.out.Slot, 0, lang.Mask(a.typ.Width))
	}
	a.body(m)
	for n := range words {
		if m.Cells[a.alu[n].Slot].Undef != 0 {
			m.Fail(at, "an undefined value is written to register %s", r.Name)
		}
		words[n] = m.Cells[a.alu[n].Slot].Val
	}
	if a.out == nil {
		return 0, lang.Mask(a.typ.Width)
	}
	return m.Cells[a.out.Slot].Val, m.Cells[a.out.Slot].Undef
}
