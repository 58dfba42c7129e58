package lang

import (
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// The result of a table is used where it is applied: `if (t.apply().hit)`, `switch (t.apply().action_run)`.

// asked is the table of t.apply().hit, miss or action_run, its application, and which of these; `!` turns hit into miss.
func (s *Scope) asked(e syntax.Expr) (t *Table, call *syntax.Call, of string) {
	if u, ok := e.(*syntax.Unary); ok && u.Op == "!" {
		t, call, of = s.asked(u.X)
		return t, call, map[string]string{"hit": "miss", "miss": "hit"}[of]
	}
	f, ok := e.(*syntax.Field)
	if !ok {
		return nil, nil, ""
	}
	if call, ok = f.X.(*syntax.Call); !ok {
		return nil, nil, ""
	}
	fn, ok := call.Fn.(*syntax.Field)
	if !ok || fn.Name != "apply" {
		return nil, nil, ""
	}
	if n, ok := fn.X.(*syntax.Name); ok {
		t, _ = s.Find(n.ID).(*Table)
	}
	return t, call, f.Name
}

// applyTable is the only application of a table.
func (s *Scope) applyTable(e *syntax.Call, t *Table) Step {
	if len(e.Args) != 0 {
		syntax.Throw(e.Pos, "a table's apply has no arguments")
	}
	if s.Build.applied[t] {
		syntax.Throw(e.Pos, "table %s is applied in two places: the chip has it in one", t.Name)
	}
	s.Build.applied[t] = true
	return t.apply
}

// noted applies a table and stores its result: the number of the action, and in the last bit whether an entry matched.
func (s *Scope) noted(call *syntax.Call, t *Table) Step {
	t.outcome = s.Build.NewPlace(BitsType(16))
	return s.applyTable(call, t)
}

func (s *Scope) found(stmt *syntax.If, t *Table, call *syntax.Call, of string) Step {
	apply := s.noted(call, t)
	if of != "hit" && of != "miss" {
		syntax.Throw(stmt.Pos, "a condition is hit or miss of a table, not %s", of)
	}
	slot, miss := t.outcome.Slot, uint64(Number(of == "miss"))
	cond := Expr{At: stmt.Pos, Type: BoolType, Eval: func(m *Machine) (uint64, uint64) {
		return m.Cells[slot].Val&1 ^ miss, m.Cells[slot].Undef & 1
	}}
	return sequence([]Step{apply, s.branches(stmt, cond)})
}

// choose compiles a switch over a table's action_run.
func (s *Scope) choose(stmt *syntax.Switch) Step {
	t, call, of := s.asked(stmt.X)
	if t == nil || of != "action_run" {
		syntax.Throw(stmt.Pos, "a switch over anything but a table's action_run is outside of the model")
	}
	apply, slot := s.noted(call, t), t.outcome.Slot
	cases := make([]Step, len(t.names)+1) // by the action's number; the last one is no action
	rest := Step(nil)
	for _, c := range stmt.Cases {
		body, spot := s.Block(c.Body), s.Build.spot(c.Pos, "case")
		run := func(m *Machine) {
			if m.Taint == 0 {
				spot.Runs++
			}
			body(m)
		}
		for _, label := range c.Labels {
			if label == nil {
				rest = run
				continue
			}
			i := slices.Index(t.names, label.ID)
			if i < 0 || cases[i] != nil {
				syntax.Throw(label.Pos, "%s is no action of table %s, or is listed twice", label.ID, t.Name)
			}
			cases[i] = run
		}
	}
	for i := range cases {
		if cases[i] == nil {
			cases[i] = rest
		}
		if cases[i] == nil {
			cases[i] = func(*Machine) {}
		}
	}
	return func(m *Machine) {
		apply(m)
		if m.Cells[slot].Undef>>1 != 0 {
			m.Join(cases...)
			return
		}
		cases[m.Cells[slot].Val>>1](m)
	}
}
