package structure

import (
	"fmt"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// expr is what an expression depends on. Calls in it are executed.
func (s *scope) expr(e syntax.Expr) set {
	if p, sliced, ok := s.place(e); ok {
		if bits, ok := s.flagSlice(p, e, sliced); ok {
			return bits
		}
		return s.w.read(p)
	}
	switch e := e.(type) {
	case *syntax.Field:
		return s.member(e)
	case *syntax.Index:
		return s.expr(e.X)
	case *syntax.Slice:
		return s.expr(e.X)
	case *syntax.Unary:
		return s.expr(e.X)
	case *syntax.Cast:
		return s.expr(e.X)
	case *syntax.Binary:
		return s.binary(e)
	case *syntax.Choice:
		return s.expr(e.C).or(s.expr(e.X)).or(s.expr(e.Y))
	case *syntax.List:
		return s.all(e.Elems)
	case *syntax.Call:
		return s.call(e)
	}
	return set{} // a constant
}

func (s *scope) all(list []syntax.Expr) (of set) {
	for _, e := range list {
		of = of.or(s.expr(e))
	}
	return of
}

const flags = place("Ingress/headers.tcp.flags")

// flagSlice: single flags are sources of their own.
func (s *scope) flagSlice(p place, e syntax.Expr, sliced bool) (set, bool) {
	slice, ok := e.(*syntax.Slice)
	if _, assigned := s.w.env[p]; assigned || p != flags || !sliced || !ok {
		return set{}, false
	}
	hi, lo := s.number(slice.Hi), s.number(slice.Lo)
	return s.w.flagBits((1<<(hi+1) - 1) &^ (1<<lo - 1)), true
}

func (s *scope) binary(e *syntax.Binary) set {
	if e.Op == "&" {
		for _, pair := range [][2]syntax.Expr{{e.X, e.Y}, {e.Y, e.X}} {
			p, sliced, ok := s.place(pair[0])
			mask, fixed := s.constant(pair[1])
			if ok && fixed && !sliced && p == flags {
				return s.w.flagBits(mask)
			}
		}
	}
	return s.expr(e.X).or(s.expr(e.Y))
}

// member is a field of something other than a variable: a lookahead, an enum.
func (s *scope) member(e *syntax.Field) set {
	if call, ok := e.X.(*syntax.Call); ok {
		return s.call(call)
	}
	return set{}
}

func (s *scope) call(e *syntax.Call) set {
	if name, ok := e.Fn.(*syntax.Name); ok {
		if a, ok := s.find(name.ID).(*action); ok {
			var params []set
			for _, arg := range e.Args {
				params = append(params, s.expr(arg))
			}
			a.run(params)
			return set{}
		}
		return s.all(e.Args) // min, max
	}
	f, ok := e.Fn.(*syntax.Field)
	if !ok {
		syntax.Throw(e.Pos, "a call that is outside of the comparison")
	}
	if p, _, ok := s.place(f.X); ok {
		return s.header(e, p, f.Name)
	}
	name, ok := f.X.(*syntax.Name)
	if !ok {
		return s.expr(f.X)
	}
	return s.methodOf(e, name.ID, f.Name)
}

// header is a method of a header, or of the packet.
func (s *scope) header(e *syntax.Call, p place, method string) set {
	switch method {
	case "isValid":
		if up, ok := p.parent(); ok && p == up.field("second") {
			return s.w.names.of(passSource)
		}
		if up, ok := p.parent(); ok && p == up.field("bridged") {
			return set{} // every packet of the egress has it, except those that this egress made
		}
		return s.w.names.of(kindSource)
	case "lookahead": // before extraction, only ports are looked at
		return s.w.names.of(portsSource)
	case "setValid", "setInvalid":
		return set{}
	}
	syntax.Throw(e.Pos, "%s is outside of the comparison", method)
	return set{}
}

func (s *scope) methodOf(e *syntax.Call, object, name string) set {
	if object == "this" { // predicate
		return s.all(e.Args)
	}
	switch x := s.find(object).(type) {
	case *table:
		return x.apply()
	case *instance:
		s.applyControl(x, e.Args)
		return set{}
	case *method:
		return x.execute(s.all(e.Args))
	case *register:
		return s.direct(e, x, name)
	case *hash:
		of := s.all(e.Args)
		if x.row >= 0 {
			of = of.or(s.w.names.of(fmt.Sprint(hashPrefix, x.row)))
		}
		return of
	case *source:
		of := s.all(e.Args)
		if x.name != "" {
			of = of.or(s.w.names.of(x.name))
		}
		return of
	}
	syntax.Throw(e.Pos, "%s.%s is outside of the comparison", object, name)
	return set{}
}

// direct is an access without a RegisterAction. A low-pass filter's sum approaches the value over time.
func (s *scope) direct(e *syntax.Call, r *register, method string) set {
	own := s.w.names.of(r.name)
	if !r.filter {
		syntax.Throw(e.Pos, "%s of a register is outside of the comparison", method)
	}
	f := s.w.reach(r, r.name, s.expr(e.Args[1]))
	value := s.expr(e.Args[0])
	f.writes, f.written = true, f.written.or(value).or(own).or(s.w.names.of(nowSource))
	return own.or(value)
}
