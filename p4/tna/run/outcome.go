package run

import (
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// What a table found is asked for where it is applied: `if (t.apply().hit)`, `switch (t.apply().action_run)`.

// asked is the table of t.apply().hit, miss or action_run, its application, and which of them; `!` counts hit as miss.
func (s *scope) asked(e syntax.Expr) (t *Table, call *syntax.Call, of string) {
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
		t, _ = s.find(n.ID).(*Table)
	}
	return t, call, f.Name
}

// applyTable is a table's application, of which there is one.
func (s *scope) applyTable(e *syntax.Call, t *Table) step {
	if len(e.Args) != 0 {
		syntax.Throw(e.Pos, "a table's apply has no arguments")
	}
	if s.build.applied[t] {
		syntax.Throw(e.Pos, "table %s is applied in two places: the chip has it in one", t.Name)
	}
	s.build.applied[t] = true
	return t.apply
}

// noted applies a table and lets it say what came of that: the number of the action, and in the last bit whether an entry was found.
func (s *scope) noted(call *syntax.Call, t *Table) step {
	t.outcome = s.build.newPlace(bitsType(16))
	return s.applyTable(call, t)
}

func (s *scope) found(stmt *syntax.If, t *Table, call *syntax.Call, of string) step {
	apply := s.noted(call, t)
	if of != "hit" && of != "miss" {
		syntax.Throw(stmt.Pos, "a condition is hit or miss of a table, not %s", of)
	}
	slot, miss := t.outcome.slot, uint64(number(of == "miss"))
	cond := expr{at: stmt.Pos, typ: boolType, eval: func(m *machine) (uint64, uint64) {
		return m.cells[slot].val&1 ^ miss, m.cells[slot].undef & 1
	}}
	return sequence([]step{apply, s.branches(stmt, cond)})
}

// choose compiles a switch over a table's action_run.
func (s *scope) choose(stmt *syntax.Switch) step {
	t, call, of := s.asked(stmt.X)
	if t == nil || of != "action_run" {
		syntax.Throw(stmt.Pos, "a switch over anything but a table's action_run is outside of the model")
	}
	apply, slot := s.noted(call, t), t.outcome.slot
	cases := make([]step, len(t.names)+1) // by the action's number; the last one is no action at all
	rest := step(nil)
	for _, c := range stmt.Cases {
		body, spot := s.block(c.Body), s.build.spot(c.Pos, "case")
		run := func(m *machine) {
			if m.taint == 0 {
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
			cases[i] = func(*machine) {}
		}
	}
	return func(m *machine) {
		apply(m)
		if m.cells[slot].undef>>1 != 0 {
			m.join(cases...)
			return
		}
		cases[m.cells[slot].val>>1](m)
	}
}
