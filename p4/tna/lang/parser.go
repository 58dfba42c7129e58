package lang

import (
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// state of a parser.
type state struct {
	body Step
	next func(m *Machine) *state // nil: accept
	spot *Spot
}

// mostStates bounds the states that a packet passes through.
const mostStates = 64

// Parser compiles the states of a parser.
func (s *Scope) Parser(decl *syntax.Control) Step {
	s.Parses = true
	for _, d := range decl.Locals {
		i, ok := d.(*syntax.Instance)
		if !ok || !slices.Contains(s.Build.inParsers, i.Type.Name) {
			syntax.Throw(d.At(), "this declaration in a parser is outside of the model")
		}
		s.instance(i)
	}
	states := map[string]*state{"accept": nil}
	for _, d := range decl.States {
		if _, twice := states[d.Name]; twice {
			syntax.Throw(d.Pos, "state %s is declared twice", d.Name)
		}
		states[d.Name] = &state{spot: s.Build.spot(d.Pos, "state "+d.Name)}
	}
	start := states["start"]
	if start == nil {
		syntax.Throw(decl.Pos, "parser %s has no state start", decl.Name)
	}
	for _, d := range decl.States {
		st := states[d.Name]
		st.body = s.Block(&syntax.Block{Pos: d.Pos, Stmts: d.Stmts})
		st.next = s.transition(d.Next, states)
	}
	return func(m *Machine) {
		m.parsing = true
		defer func() { m.parsing = false }()
		for st, n := start, 0; st != nil && m.Short == 0; n++ {
			if n == mostStates {
				m.Fail(decl.Pos, "a packet went through %d states", n)
				return
			}
			st.spot.Runs++
			st.body(m)
			if m.Short == 0 {
				st = st.next(m)
			}
		}
	}
}

func goal(at syntax.Pos, name string, states map[string]*state) *state {
	st, ok := states[name]
	if !ok {
		syntax.Throw(at, "there is no state %s in the model", name)
	}
	return st
}

func (s *Scope) transition(t *syntax.Transition, states map[string]*state) func(*Machine) *state {
	if t.Keys == nil {
		to := goal(t.Pos, t.To, states)
		return func(*Machine) *state { return to }
	}
	type row struct {
		match []Match
		set   *ValueSet // of the only key; nil: see match
		to    *state
		spot  *Spot
	}
	var keys []Key
	for _, k := range t.Keys {
		x := s.Value(k)
		keys = append(keys, Key{Name: syntax.Print(k), Kind: "ternary", Width: x.Type.Width, eval: x.Eval})
	}
	var rows []row
	for _, c := range t.Cases {
		r := row{to: goal(c.Pos, c.To, states), spot: s.Build.spot(c.Pos, "to "+c.To)}
		if _, all := c.Keys[0].(*syntax.Any); len(c.Keys) != len(keys) && !(all && len(c.Keys) == 1) {
			syntax.Throw(c.Pos, "%d values for %d keys", len(c.Keys), len(keys))
		}
		if r.set = s.valueSet(c, keys); r.set == nil && len(c.Keys) == len(keys) {
			for i, k := range c.Keys {
				r.match = append(r.match, s.match(k, keys[i]))
			}
		}
		rows = append(rows, r)
	}
	at := t.Pos
	return func(m *Machine) *state {
		var vals [mostKeys]uint64
		for i := range keys {
			v, u := keys[i].eval(m)
			if m.Short != 0 {
				return nil
			}
			if u != 0 {
				m.Fail(at, "%s is undefined where the parser selects by it", keys[i].Name)
			}
			vals[i] = v
		}
	next:
		for _, r := range rows {
			for i := range r.match {
				if (vals[i]^r.match[i].Value)&r.match[i].Mask != 0 {
					continue next
				}
			}
			if r.set != nil && !r.set.has(vals[0]) {
				continue
			}
			r.spot.Runs++
			return r.to
		}
		m.Short |= parserNoMatch
		return nil
	}
}
