package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// salu is a stateful ALU while one of its actions is compiled. Comparisons and updates read the words as they were in
// memory, whatever was assigned before; an output reads their new values.
type salu struct {
	action  *registerAction
	names   map[string]bool // comparisons, printed
	output  bool            // the code being compiled is for the output
	updates []int           // of each word
	outputs map[string]bool // other than 0, printed
	params  map[string]bool // local names of parameters in this action
	read    map[string]bool // those of them that it reads
	result  int             // the word being computed; -1: none
}

// word of the element.
type word struct{ n int }

// aluStruct is the parameter of a pair.
type aluStruct struct{ typ *lang.Type }

func (d *aluStruct) word(e *syntax.Field) *word {
	for n, f := range d.typ.Fields {
		if f.Name == e.Name {
			return &word{n: n}
		}
	}
	syntax.Throw(e.Pos, "%s has no field %s", d.typ, e.Name)
	return nil
}

// compile compiles the method of a RegisterAction.
func (a *registerAction) compile(s *lang.Scope, d *syntax.Action) {
	in := s.Inner()
	alu := &salu{action: a, names: map[string]bool{}, updates: make([]int, a.reg.Words), outputs: map[string]bool{},
		params: map[string]bool{}, read: map[string]bool{}, result: -1}
	in.Unit = alu
	if len(d.Params) < 1 || len(d.Params) > 2 || d.Params[0].Dir != "inout" || !lang.Same(s.TypeOf(d.Params[0].Type), a.reg.typ) {
		syntax.Throw(d.Pos, "apply has an inout parameter of the register's type, and possibly one that is out")
	}
	for range a.reg.Words {
		a.mem = append(a.mem, s.Build.NewPlace(lang.BitsType(a.reg.Width)))
		a.alu = append(a.alu, s.Build.NewPlace(lang.BitsType(a.reg.Width)))
	}
	if a.reg.Words == 2 {
		in.Declare(d.Pos, d.Params[0].Name, &aluStruct{typ: a.reg.typ})
	} else {
		in.Declare(d.Pos, d.Params[0].Name, &word{})
	}
	if len(d.Params) == 2 {
		p := d.Params[1]
		if p.Dir != "out" || !lang.Same(s.TypeOf(p.Type), a.typ) {
			syntax.Throw(p.Pos, "the output is `out %s`", a.typ)
		}
		a.out = s.Build.NewPlace(a.typ)
		in.Declare(p.Pos, p.Name, a.out)
	}
	a.body = in.Block(d.Body)
	for n, count := range alu.updates {
		if count > 2 {
			syntax.Throw(d.Pos, "%d different updates of word %d: a stateful ALU has two", count, n)
		}
	}
	exclusive(d.Body)
	for name, given := range alu.params {
		if given && !alu.read[name] {
			syntax.Throw(d.Pos, "%s has a RegisterParam's value and is never read: the compiler fails on it", name)
		}
	}
}

// aluOf is the stateful ALU of a scope's action; nil: none.
func aluOf(s *lang.Scope) *salu {
	u, _ := s.Unit.(*salu)
	return u
}

func (u *salu) Read(s *lang.Scope, e syntax.Expr) (lang.Expr, bool) {
	if n, ok := e.(*syntax.Name); ok {
		if _, pair := s.Find(n.ID).(*aluStruct); pair {
			syntax.Throw(n.Pos, "a pair of words is read by its fields")
		}
	}
	if w := u.target(s, e); w != nil {
		return u.word(e.At(), w), true
	}
	return lang.Expr{}, false
}

func (u *salu) word(at syntax.Pos, w *word) lang.Expr {
	p := *u.action.mem[w.n]
	if u.output {
		p = *u.action.alu[w.n]
	}
	p.Readonly = true
	return lang.Read(at, &p)
}

// Local is a local name for a value.
func (u *salu) Local(s *lang.Scope, d *syntax.Var, t *lang.Type) lang.Step {
	if d.Init == nil {
		syntax.Throw(d.Pos, "a variable of a RegisterAction needs a value")
	}
	u.operators(s, d.Init)
	u.use(s, d.Init, false)
	_, call := d.Init.(*syntax.Call)
	u.params[d.Name] = call && isConstant(s, d.Init)
	p := s.Build.NewPlace(t)
	st := s.Store(d.Pos, p, s.Expr(d.Init))
	p.Readonly = true
	s.Declare(d.Pos, d.Name, p)
	return st
}

// Assign to a word, or to the output.
func (u *salu) Assign(s *lang.Scope, a *syntax.Assign) lang.Step {
	if call, ok := a.R.(*syntax.Call); !ok || syntax.Print(call.Fn) != "this.predicate" {
		u.operators(s, a.R)
	}
	if call, ok := a.R.(*syntax.Call); !ok || syntax.Print(call.Fn) != "this.predicate" {
		u.use(s, a.R, false)
	}
	if w := u.target(s, a.L); w != nil {
		u.updates[w.n]++
		u.result = w.n
		defer func() { u.result = -1 }()
		return s.Store(a.Pos, u.action.alu[w.n], s.Expr(a.R))
	}
	if n, ok := a.L.(*syntax.Name); !ok || u.action.out == nil || s.Find(n.ID) != u.action.out {
		syntax.Throw(a.Pos, "a RegisterAction assigns to its element and its output only")
	}
	u.puts(s, a)
	u.output = true
	defer func() { u.output = false }()
	return s.Store(a.Pos, u.action.out, s.Expr(a.R))
}

func (u *salu) target(s *lang.Scope, l syntax.Expr) *word {
	switch l := l.(type) {
	case *syntax.Name:
		w, _ := s.Find(l.ID).(*word)
		return w
	case *syntax.Field:
		if n, ok := l.X.(*syntax.Name); ok {
			if d, ok := s.Find(n.ID).(*aluStruct); ok {
				return d.word(l)
			}
		}
	}
	return nil
}

// operators rejects what does not fit into one instruction of the ALU: more than one operation on words and fields.
func (u *salu) operators(s *lang.Scope, e syntax.Expr) {
	if n := u.count(s, e); n > 1 {
		syntax.Throw(e.At(), "%d operations in one statement of a RegisterAction: a stateful ALU does one", n)
	}
}

func (u *salu) count(s *lang.Scope, e syntax.Expr) int {
	switch e := e.(type) {
	case *syntax.Binary:
		n := u.count(s, e.X) + u.count(s, e.Y)
		switch {
		case e.Op == "++" || isConstant(s, e):
			return n
		case e.Op == "<<" || e.Op == ">>" || e.Op == "*" || e.Op == "/" || e.Op == "%":
			syntax.Throw(e.Pos, "%s in a RegisterAction: a stateful ALU has no such operation", e.Op)
		}
		return n + 1
	case *syntax.Unary:
		if isConstant(s, e) {
			return 0
		}
		return 1 + u.count(s, e.X)
	case *syntax.Cast:
		return u.count(s, e.X)
	case *syntax.Slice:
		return u.count(s, e.X)
	case *syntax.Call:
		if isConstant(s, e) {
			return 0
		}
		n := 1
		for _, a := range e.Args {
			n += u.count(s, a)
		}
		return n
	case *syntax.Choice:
		syntax.Throw(e.Pos, "?: in a RegisterAction is outside of the model")
	}
	return 0
}

// isConstant reports whether it consists of numbers, constants, and parameters that the control plane sets.
func isConstant(s *lang.Scope, e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Number, *syntax.Bool:
		return true
	case *syntax.Name:
		_, ok := s.Find(e.ID).(lang.Constant)
		alu := aluOf(s)
		if alu != nil && alu.params[e.ID] {
			alu.read[e.ID] = true
			return true
		}
		return ok
	case *syntax.Unary:
		return isConstant(s, e.X)
	case *syntax.Binary:
		return isConstant(s, e.X) && isConstant(s, e.Y)
	case *syntax.Cast:
		return isConstant(s, e.X)
	case *syntax.Call:
		if f, ok := e.Fn.(*syntax.Field); ok && f.Name == "read" {
			n, _ := f.X.(*syntax.Name)
			if n == nil {
				return false
			}
			_, ok := s.Find(n.ID).(*Param)
			return ok
		}
	}
	return false
}

// negated comparisons need the same unit as the comparison they negate.
var negated = map[string]string{"!=": "==", ">=": "<", ">": "<="}

func (u *salu) Condition(s *lang.Scope, e syntax.Expr) lang.Expr {
	u.compared(s, e)
	return u.exact(s, e)
}

// compared counts the comparisons of a condition: the ALU has two units.
func (u *salu) compared(s *lang.Scope, e syntax.Expr) {
	switch e := e.(type) {
	case *syntax.Unary:
		if e.Op == "!" {
			u.compared(s, e.X)
			return
		}
	case *syntax.Binary:
		if e.Op == "&&" || e.Op == "||" {
			u.compared(s, e.X)
			u.compared(s, e.Y)
			return
		}
		op := e.Op
		if n, ok := negated[op]; ok {
			op = n
		}
		u.names[syntax.Print(&syntax.Binary{Op: op, X: e.X, Y: e.Y})] = true
		if len(u.names) > 2 {
			syntax.Throw(e.Pos, "a third comparison in a RegisterAction: a stateful ALU has two")
		}
		u.operands(s, e)
		u.use(s, e, false)
		return
	}
	syntax.Throw(e.At(), "a condition in a RegisterAction is made of comparisons")
}

// operands of one comparison: one word of memory, one value of the packet, and a constant.
func (u *salu) operands(s *lang.Scope, e *syntax.Binary) {
	u.signedSum(s, e)
	var memory, packet int
	var walk func(x syntax.Expr)
	walk = func(x syntax.Expr) {
		switch b := x.(type) {
		case *syntax.Unary:
			if !s.Value(b).Const {
				syntax.Throw(b.Pos, "%s in a comparison of a RegisterAction: the compiler does not support it, and turns a minus into an instruction that compares nothing", b.Op)
			}
		case *syntax.Call:
			if isConstant(s, b) {
				syntax.Throw(b.Pos, "a RegisterParam in a comparison: the compiler finds it only by the name of a variable")
			}
		case *syntax.Binary:
			if b.Op == "+" || b.Op == "-" {
				walk(b.X)
				walk(b.Y)
				return
			}
		case *syntax.Cast:
			u.widened(s, b)
			walk(b.X)
			return
		}
		switch {
		case isConstant(s, x):
		case u.target(s, x) != nil || u.isLocal(s, x):
			memory++
		default:
			packet++
		}
	}
	walk(e.X)
	walk(e.Y)
	if memory > 1 || packet > 1 {
		syntax.Throw(e.Pos, "%d words and %d packet fields in one comparison of a RegisterAction: it has one of each", memory, packet)
	}
}

// signedSum rejects a signed sum on one side of an ordered comparison: the compiler selects an instruction that zero-extends the operands,
// and ignores a cast that changes no bit. With a wider type it selects the correct one.
func (u *salu) signedSum(s *lang.Scope, e *syntax.Binary) {
	if e.Op == "==" || e.Op == "!=" {
		return
	}
	for _, side := range []syntax.Expr{e.X, e.Y} {
		t := s.Value(side).Type
		if sum, ok := bare(s, side).(*syntax.Binary); ok && (sum.Op == "+" || sum.Op == "-") && !isConstant(s, sum) && t.Signed && t.Width <= u.action.reg.Width {
			syntax.Throw(e.Pos, "a signed sum in a comparison: the compiler extends its operands by zeros; cast both sides to int<64>")
		}
	}
}

// bare strips casts that change no bit.
func bare(s *lang.Scope, e syntax.Expr) syntax.Expr {
	for {
		c, ok := e.(*syntax.Cast)
		if !ok || s.Value(c).Type.Width != s.Value(c.X).Type.Width {
			return e
		}
		e = c.X
	}
}

// mostBits is the width of the hash unit's result for one input.
const mostBits = 52

// widened rejects a wider type of a word or a variable that the hash unit could compute: each time the compiler checks whether it can,
// it adds the operand to the comparison.
func (u *salu) widened(s *lang.Scope, c *syntax.Cast) {
	x := bare(s, c.X)
	if w := s.Value(c).Type.Width; w <= s.Value(x).Type.Width || w > mostBits {
		return
	}
	if n, ok := x.(*syntax.Name); u.target(s, x) != nil || u.isLocal(s, x) || ok && u.params[n.ID] {
		syntax.Throw(c.Pos, "a cast of %s to %s in a comparison: the compiler adds it twice; cast to more than %d bits", syntax.Print(x), s.Value(c).Type, mostBits)
	}
}

// isLocal reports a variable of the action, which is a word with another type.
func (u *salu) isLocal(s *lang.Scope, x syntax.Expr) bool {
	n, ok := x.(*syntax.Name)
	if !ok {
		return false
	}
	for in := s; in != nil && in.Unit == lang.Unit(u); in = in.Outer {
		if _, ok := in.Names[n.ID].(*lang.Place); ok {
			return true
		}
	}
	return false
}

// This is this.predicate(first, second): 1 << (first + 2 * second).
func (u *salu) This(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "predicate")
	if len(e.Args) < 1 || len(e.Args) > 2 {
		syntax.Throw(e.Pos, "predicate has one or two arguments")
	}
	u.output = false // comparisons read memory
	defer func() { u.output = true }()
	var parts []lang.Eval
	for _, a := range e.Args {
		parts = append(parts, u.Condition(s, a).Eval)
	}
	all := lang.Mask(u.action.typ.Width)
	return lang.Expr{At: e.Pos, Type: u.action.typ, Eval: func(m *lang.Machine) (uint64, uint64) {
		n := uint64(0)
		for i, f := range parts {
			v, t := f(m)
			if t != 0 {
				return 0, all
			}
			n += v << i
		}
		return 1 << n & all, 0
	}}
}

// exact compiles a condition, and counts unsigned comparisons of a sum or difference whose result would differ if the
// ALU did not wrap: a comment in the compiler states that no instruction is right in all cases.
func (u *salu) exact(s *lang.Scope, e syntax.Expr) lang.Expr {
	switch e := e.(type) {
	case *syntax.Unary:
		x := u.exact(s, e.X)
		f := x.Eval
		return lang.Expr{At: e.Pos, Type: lang.BoolType, Eval: func(m *lang.Machine) (uint64, uint64) { v, t := f(m); return v ^ 1, t }}
	case *syntax.Binary:
		if e.Op == "&&" || e.Op == "||" {
			return lang.Logic(e, u.exact(s, e.X), u.exact(s, e.Y))
		}
		x := s.Expr(e)
		if sum, ok := e.X.(*syntax.Binary); ok && (sum.Op == "+" || sum.Op == "-") && e.Op != "==" && e.Op != "!=" {
			return u.watch(s, e, sum, x)
		}
		return x
	}
	return s.Value(e).As(lang.BoolType)
}

func (u *salu) watch(s *lang.Scope, e, sum *syntax.Binary, x lang.Expr) lang.Expr {
	a, b := lang.Alike(e.Pos, s.Value(sum.X), s.Value(sum.Y))
	k := s.Value(e.Y)
	if !k.Const || a.Type.Class != lang.ClassBits || a.Type.Signed {
		return x
	}
	wrap := &Wrap{Pos: e.Pos}
	switchOf(s).Wraps = append(switchOf(s).Wraps, wrap)
	test, sign := lang.Comparison(e.Pos, e.Op), int64(1)
	if sum.Op == "-" {
		sign = -1
	}
	f, fa, fb, limit := x.Eval, a.Eval, b.Eval, int64(uint64(k.Val)&lang.Mask(a.Type.Width))
	return lang.Expr{At: e.Pos, Type: lang.BoolType, Eval: func(m *lang.Machine) (uint64, uint64) {
		v, t := f(m)
		va, _ := fa(m)
		vb, _ := fb(m)
		d := int64(va) + sign*int64(vb) - limit
		c := 0
		if d != 0 {
			c = 1
			if d < 0 {
				c = -1
			}
		}
		if t == 0 && test(c) != (v != 0) {
			wrap.Packets++
		}
		return v, t
	}}
}
