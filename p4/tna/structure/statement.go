package structure

import (
	"maps"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

func (s *scope) block(b *syntax.Block) {
	if b == nil {
		return
	}
	in := &scope{w: s.w, outer: s, names: map[string]any{}, path: s.path}
	for _, one := range b.Stmts {
		in.statement(one)
	}
}

func (s *scope) statement(st syntax.Stmt) {
	switch st := st.(type) {
	case *syntax.Block:
		s.block(st)
	case *syntax.If:
		s.branch(st)
	case *syntax.Assign:
		s.assignment(st)
	case *syntax.Do:
		s.expr(st.Call)
	case *syntax.Var:
		s.variable(st)
	default:
		syntax.Throw(st.At(), "a statement that is outside of the comparison")
	}
}

func (s *scope) branch(st *syntax.If) {
	if n, ok := s.constant(st.Cond); ok {
		if n != 0 {
			s.block(st.Then)
		} else if st.Else != nil {
			s.statement(st.Else)
		}
		return
	}
	decides := s.expr(st.Cond)
	s.w.fork(decides, func() { s.block(st.Then) }, func() {
		if st.Else != nil {
			s.statement(st.Else)
		}
	})
}

func (s *scope) assignment(st *syntax.Assign) {
	to, sliced, ok := s.place(st.L)
	if !ok {
		syntax.Throw(st.At(), "an assignment to %s is outside of the comparison", syntax.Print(st.L))
	}
	if from, part, ok := s.place(st.R); ok && !part && !sliced && s.w.isStruct(from) {
		s.w.copyPlace(to, from, s.w.guard)
		s.w.running.store(to, s.w.read(from).or(s.w.guard))
		return
	}
	of := s.expr(st.R).or(s.w.guard)
	if sliced {
		of = of.or(s.w.read(to))
	}
	s.w.assign(to, of)
	s.w.running.store(to, of)
}

// isStruct reports whether fields of a place were assigned.
func (w *walker) isStruct(p place) bool {
	for q := range w.env {
		if up, ok := q.parent(); ok && up == p {
			return true
		}
	}
	return false
}

// parserStatement reads all states of a parser, in the order of the text. One may assign what another assigns.
func (s *scope) parserStatement(st syntax.Stmt) {
	a, ok := st.(*syntax.Assign)
	if !ok {
		return // extract, advance: what is extracted has the headers' names
	}
	to, _, ok := s.place(a.L)
	if !ok {
		syntax.Throw(st.At(), "an assignment to %s is outside of the comparison", syntax.Print(a.L))
	}
	if from, _, ok := s.place(a.R); ok && from == to {
		return
	}
	if _, whole := a.R.(*syntax.List); whole {
		return // zeros
	}
	of := s.expr(a.R).or(s.w.guard)
	s.w.env[to] = of.or(s.w.read(to))
}

// apply a control: its parameters are the caller's own places.
func (s *scope) applyControl(i *instance, args []syntax.Expr) {
	in := &scope{w: s.w, outer: s.w.global, names: map[string]any{}, path: i.path}
	for n, p := range i.decl.Ctor {
		in.names[p.Name] = constant(i.args[n])
	}
	for n, p := range i.decl.Params {
		where, sliced, ok := s.place(args[n])
		if !ok || sliced {
			of := s.expr(args[n])
			where = place(i.path + p.Name)
			s.w.assign(where, of.or(s.w.guard))
		} else if p.Dir == "out" {
			s.w.assign(where, set{})
		}
		in.names[p.Name] = where
	}
	in.body(i.decl)
}

// run an action with what its parameters depend on.
func (a *action) run(params []set) {
	in := &scope{w: a.in.w, outer: a.in, names: map[string]any{}, path: a.in.path + a.decl.Name + "."}
	for n, p := range a.decl.Params {
		where := place(in.path + p.Name)
		in.names[p.Name] = where
		var of set
		if n < len(params) {
			of = params[n]
		}
		a.in.w.assign(where, of)
	}
	in.block(a.decl.Body)
}

// execution of a RegisterAction being read.
type execution struct {
	memory  place
	writes  bool
	written set
}

// store records what is written to memory.
func (x *execution) store(p place, of set) {
	if x == nil {
		return
	}
	if up, part := p.parent(); p == x.memory || part && up == x.memory {
		x.writes, x.written = true, x.written.or(of)
	}
}

// execute a RegisterAction: an access, and its output.
func (m *method) execute(index set) set {
	w := m.in.w
	r := w.reach(m.of, m.name, index)
	outside, guard := w.env, w.guard
	w.env, w.guard = maps.Clone(w.env), set{}
	in := &scope{w: w, outer: m.in, names: map[string]any{}, path: m.in.path + m.name + "."}
	memory, result := place(in.path+"memory"), place(in.path+"result")
	body := m.decl.Methods[0]
	w.env[memory], w.env[result] = w.names.of(m.of.name), set{}
	for n, p := range body.Params {
		if n == 0 {
			in.names[p.Name] = memory
		} else {
			in.names[p.Name] = result
		}
	}
	w.running = &execution{memory: memory}
	in.block(body.Body)
	if w.running.writes {
		r.writes, r.written = true, r.written.or(w.running.written)
	}
	of := w.env[result]
	w.env, w.guard, w.running = outside, guard, nil
	return of
}
