package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// Resources that all actions of a stateful ALU share, and the rule that an action's assignments must exclude each other.

const (
	mostInputs    = 2  // packet fields of a register's actions
	mostNumbers   = 4  // that do not fit into an instruction, including RegisterParams
	largestSmall  = 7  // numbers that fit: -8 to 7
	mostDigest    = 47 // bytes
	mostRandom    = 32 // bits
	outputsOfPair = 1
)

// memory of one stage for a register's words, in bits: measured with the compiler, unlike docs/memory-rules.md.
var memory = map[Target]int{Tofino1: 143_360 * 32, Tofino2: 2 * 47_104 * 32}

// uses of a stateful ALU.
type uses struct {
	inputs  map[string]bool
	numbers map[int64]bool
}

// use records what an expression needs: fields of the packet, and numbers that do not fit into an instruction.
func (u *salu) use(s *lang.Scope, e syntax.Expr, negative bool) {
	if isConstant(s, e) {
		u.number(s, e, negative)
		return
	}
	if u.target(s, e) != nil || u.isLocal(s, e) {
		return
	}
	switch x := e.(type) {
	case *syntax.Binary:
		if x.Op != "++" {
			order := x.Op == "-" || negated[x.Op] != "" || x.Op == "==" || x.Op == "<" || x.Op == "<="
			u.use(s, x.X, negative)
			u.use(s, x.Y, negative != order)
			return
		}
	case *syntax.Unary:
		u.use(s, x.X, negative)
		return
	case *syntax.Cast:
		u.use(s, x.X, negative)
		return
	case *syntax.Call:
		for _, a := range x.Args {
			u.use(s, a, negative)
		}
		return
	}
	if u.action.reg.inputs[syntax.Print(e)] = true; len(u.action.reg.inputs) > mostInputs {
		syntax.Throw(e.At(), "a third packet field in the actions of register %s: a stateful ALU has two inputs", u.action.reg.Name)
	}
}

func (u *salu) number(s *lang.Scope, e syntax.Expr, negative bool) {
	x := s.Value(e)
	if !x.Const { // a RegisterParam
		return
	}
	v := x.Val
	if negative {
		v = -v
	}
	if v >= -largestSmall-1 && v <= largestSmall {
		return
	}
	if u.action.reg.numbers[v] = true; len(u.action.reg.numbers) > mostNumbers {
		syntax.Throw(e.At(), "a fifth large number in the actions of register %s: a stateful ALU keeps four", u.action.reg.Name)
	}
}

// made is an assignment of an action: its position, as branches of the enclosing ifs.
type made struct {
	at   syntax.Pos
	path []branch
	zero bool
}

type branch struct {
	of  *syntax.If
	yes bool
}

// excludes reports whether the two are in different branches of an if.
func (m made) excludes(o made) bool {
	for i := range min(len(m.path), len(o.path)) {
		if m.path[i].of != o.path[i].of {
			return false
		}
		if m.path[i].yes != o.path[i].yes {
			return true
		}
	}
	return false
}

// exclusive rejects several assignments to one word, or to the output, that are not exclusive: the chip does not execute them in sequence, but
// combines the results. An output that is initialized to 0 does not count.
func exclusive(b *syntax.Block) {
	all := map[string][]made{}
	var walk func(stmt syntax.Stmt, path []branch)
	walk = func(stmt syntax.Stmt, path []branch) {
		switch stmt := stmt.(type) {
		case *syntax.Block:
			for _, one := range stmt.Stmts {
				walk(one, path)
			}
		case *syntax.If:
			walk(stmt.Then, append(path[:len(path):len(path)], branch{stmt, true}))
			if stmt.Else != nil {
				walk(stmt.Else, append(path[:len(path):len(path)], branch{stmt, false}))
			}
		case *syntax.Assign:
			n, number := stmt.R.(*syntax.Number)
			m, name := made{at: stmt.Pos, path: path, zero: number && n.Value == 0 && len(path) == 0}, syntax.Print(stmt.L)
			for _, before := range all[name] {
				if !before.zero && !m.excludes(before) {
					syntax.Throw(stmt.Pos, "%s is assigned at %s too, and both may happen: a stateful ALU does one of them", name, before.at)
				}
			}
			all[name] = append(all[name], m)
		}
	}
	walk(b, nil)
}

// puts checks the outputs of an action: one source, and in a register of single words also what the other half computes.
func (u *salu) puts(s *lang.Scope, a *syntax.Assign) {
	if isConstant(s, a.R) {
		v := s.Value(a.R)
		if v.Const && v.Val == 0 {
			return
		}
		if u.action.reg.Words == 2 && v.Const && v.Val&(v.Val-1) != 0 {
			syntax.Throw(a.Pos, "a pair's action puts out %d: it has powers of two", v.Val)
		}
	}
	_, predicate := a.R.(*syntax.Call)
	if u.action.reg.Words == 2 && !predicate && u.count(s, a.R) > 0 {
		syntax.Throw(a.Pos, "a pair's action puts out what it calculates for its words, and nothing else")
	}
	if u.outputs[syntax.Print(a.R)] = true; len(u.outputs) > outputsOfPair && u.action.reg.Words == 2 || len(u.outputs) > 2 {
		syntax.Throw(a.Pos, "another output of a RegisterAction: a stateful ALU has one")
	}
}

// fits rejects a register that does not fit into one stage.
func (r *Register) fits(target Target) {
	if r.Entries*r.Words*r.Width > memory[target] {
		syntax.Throw(r.At, "%d bits in register %s: a stage of Tofino %d has memory for %d", r.Entries*r.Words*r.Width, r.Name, target, memory[target])
	}
}
