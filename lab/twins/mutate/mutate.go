// Package mutate plants bugs in a twin: one small change of its program each, drawn by a seed. A test of twins is worth what it
// finds of them.
package mutate

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// Bug is one change that can be made and taken back.
type Bug struct {
	syntax.Pos
	Kind   string
	What   string
	Plant  func()
	Remove func()
	Shows  func() bool // whether any key of its table could show it; nil: yes
	// Where it is, for who knows what packets reach: the entry of a table, of one of its instances, or the action by its name.
	Table  *lang.Table
	Row    *lang.Row
	Action string
}

func (b *Bug) String() string { return fmt.Sprintf("%s: %s: %s", b.Pos, b.Kind, b.What) }

// finder walks a program and lists what could be changed, by kind.
type finder struct {
	bugs     map[string][]*Bug
	rows     map[syntax.Pos]*lang.Table // tables with their constants
	in       string                     // the RegisterAction, action or control
	action   string                     // whose body it is in, or nothing
	operands map[string][]string        // variables of the control, by type
	to       string                     // what the expression is assigned to: " for NAME", or " in NAME" when it is a part; or nothing
}

// Kinds in which bugs are planted.
var Kinds = slices.Concat([]string{"slice", "polynomial", "order", "wrap", "compare", "second access", "bank", "action", "constant", "parser"}, handKinds)

// Find lists the bugs that could be planted in the controls and parsers of a program that its switch uses.
func Find(p *syntax.Program, sw *run.Switch) map[string][]*Bug {
	f := &finder{bugs: map[string][]*Bug{}, rows: map[syntax.Pos]*lang.Table{}}
	for _, t := range sw.Tables {
		f.rows[t.At] = t
	}
	for _, d := range p.Decls {
		if c, ok := d.(*syntax.Control); ok && slices.Contains(sw.Controls, c.Name) {
			f.in = c.Name
			f.control(c)
		}
	}
	return f.bugs
}

// Draw takes n bugs, of every kind as many as there are and can be.
func Draw(bugs map[string][]*Bug, r *rand.Rand, n int) []*Bug { return DrawOf(Kinds, bugs, r, n) }

// DrawOf is Draw of these kinds, in this order.
func DrawOf(kinds []string, bugs map[string][]*Bug, r *rand.Rand, n int) (drawn []*Bug) {
	left := map[string][]*Bug{}
	for _, kind := range kinds {
		left[kind] = append([]*Bug(nil), bugs[kind]...)
	}
	for len(drawn) < n {
		tried := false
		for _, kind := range kinds {
			all := left[kind]
			if len(all) == 0 || len(drawn) == n {
				continue
			}
			tried = true
			i := r.IntN(len(all))
			if shows := all[i].Shows; shows == nil || shows() {
				drawn = append(drawn, all[i])
			}
			all[i] = all[len(all)-1]
			left[kind] = all[:len(all)-1]
		}
		if !tried {
			return drawn
		}
	}
	return drawn
}

func (f *finder) add(at syntax.Pos, kind, what string, plant, remove func()) {
	f.bugs[kind] = append(f.bugs[kind], &Bug{Pos: at, Kind: kind, What: f.in + ": " + what, Plant: plant, Remove: remove, Action: f.action})
}

func (f *finder) control(c *syntax.Control) {
	f.operands = operands(c)
	for _, d := range c.Locals {
		switch d := d.(type) {
		case *syntax.Instance:
			f.instance(d)
		case *syntax.Action:
			f.action = d.Name
			f.block(d.Body)
			f.action = ""
		case *syntax.Table:
			f.table(d)
		}
	}
	if c.Apply != nil {
		f.block(c.Apply)
	}
	for _, s := range c.States {
		f.state(s)
	}
}

func (f *finder) instance(i *syntax.Instance) {
	if i.Type.Name == "CRCPolynomial" {
		if n, ok := i.Args[0].(*syntax.Number); ok {
			was := n.Value
			f.add(n.Pos, "polynomial", fmt.Sprintf("%#x of %s", was, i.Name), func() { n.Value ^= 0x100 }, func() { n.Value = was })
		}
	}
	was := f.in
	for _, m := range i.Methods {
		f.in = was + "." + i.Name
		f.block(m.Body)
	}
	f.in = was
}

// table bugs: entries in another order, and entries that do something else. What no key can show is left out: the order of entries that exclude
// each other, or whose common keys are an earlier entry's; and what is done by an entry that has no keys of its own.
func (f *finder) table(t *syntax.Table) {
	f.entries(t)
	rows := f.rows[t.Pos].Rows
	for i := 0; i+1 < len(t.Entries); i++ {
		a, b := t.Entries[i], t.Entries[i+1]
		shared, meet := common(rows[i].Match, rows[i+1].Match)
		if syntax.Print(a.Action) != syntax.Print(b.Action) && meet && reachable(shared, rows[:i]) {
			swap := func() { t.Entries[i], t.Entries[i+1] = t.Entries[i+1], t.Entries[i] }
			f.add(a.Pos, "order", fmt.Sprintf("entries %d and %d of %s", i, i+1, t.Name), swap, swap)
		}
	}
	for i, e := range t.Entries {
		was := e.Action
		for _, n := range t.Actions {
			if other := (&syntax.Call{Pos: e.Pos, Fn: n}); len(was.Args) == 0 && n.ID != was.Fn.(*syntax.Name).ID {
				if reachable(rows[i].Match, rows[:i]) {
					f.add(e.Pos, "action", fmt.Sprintf("entry %d of %s: %s for %s", i, t.Name, n.ID, was.Fn.(*syntax.Name).ID),
						func() { e.Action = other }, func() { e.Action = was })
					last := f.bugs["action"][len(f.bugs["action"])-1]
					last.Table, last.Row = f.rows[t.Pos], rows[i]
				}
				break
			}
		}
	}
}

func (f *finder) block(b *syntax.Block) {
	for i, s := range b.Stmts {
		f.header(b, i)
		switch s := s.(type) {
		case *syntax.Assign:
			f.to = " in " + syntax.Print(s.L)
			if _, whole := s.R.(*syntax.Number); whole {
				f.to = " for " + syntax.Print(s.L)
			}
			f.expr(s.R, func(e syntax.Expr) { s.R = e })
			f.to = ""
			if executes(s.R) {
				f.twice(b, i)
			}
		case *syntax.Do:
			f.call(s.Call)
			if executes(s.Call) {
				f.twice(b, i)
			}
		case *syntax.If:
			f.predicate(b, i, s)
			f.branch(s)
		case *syntax.Block:
			f.block(s)
		}
	}
}

func (f *finder) branch(s *syntax.If) {
	f.expr(s.Cond, func(e syntax.Expr) { s.Cond = e })
	f.block(s.Then)
	switch e := s.Else.(type) {
	case *syntax.Block:
		f.block(e)
	case *syntax.If:
		f.branch(e)
	}
}

func executes(e syntax.Expr) bool {
	c, ok := e.(*syntax.Call)
	if !ok {
		return false
	}
	fn, ok := c.Fn.(*syntax.Field)
	return ok && fn.Name == "execute"
}

// twice touches a register a second time.
func (f *finder) twice(b *syntax.Block, i int) {
	was := b.Stmts
	more := append(append(append([]syntax.Stmt(nil), was[:i+1]...), was[i]), was[i+1:]...)
	f.add(was[i].At(), "second access", "the access again", func() { b.Stmts = more }, func() { b.Stmts = was })
}

func (f *finder) call(c *syntax.Call) {
	for i, a := range c.Args {
		f.expr(a, func(e syntax.Expr) { c.Args[i] = e })
	}
}

// other operators that a hurried hand writes.
var other = map[string]string{"|+|": "+", "|-|": "-", "+": "-", "-": "+", "&": "|", "|": "&"}
var near = map[string]string{"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&"}

func (f *finder) expr(e syntax.Expr, set func(syntax.Expr)) {
	switch e := e.(type) {
	case *syntax.Binary:
		f.binary(e, set)
	case *syntax.Unary:
		f.expr(e.X, func(x syntax.Expr) { e.X = x })
	case *syntax.Cast:
		f.expr(e.X, func(x syntax.Expr) { e.X = x })
	case *syntax.Call:
		f.call(e)
	case *syntax.List:
		for i, x := range e.Elems {
			f.expr(x, func(x syntax.Expr) { e.Elems[i] = x })
		}
	case *syntax.Slice:
		f.slice(e)
	case *syntax.Name:
		f.name(e)
	case *syntax.Number:
		was := e.Value
		if e.Width == 0 || was+1 < 1<<min(e.Width, 63) {
			f.add(e.Pos, "constant", fmt.Sprintf("%d + 1%s", was, f.to), func() { e.Value++ }, func() { e.Value = was })
		}
	}
}

func (f *finder) binary(e *syntax.Binary, set func(syntax.Expr)) {
	was := e.Op
	if op, ok := other[was]; ok {
		f.add(e.Pos, "wrap", fmt.Sprintf("%s for %s in %s", op, was, syntax.Print(e)), func() { e.Op = op }, func() { e.Op = was })
	}
	if op, ok := near[was]; ok {
		f.add(e.Pos, "compare", fmt.Sprintf("%s for %s in %s", op, was, syntax.Print(e)), func() { e.Op = op }, func() { e.Op = was })
	}
	if n, ok := e.X.(*syntax.Name); ok && was == "++" && n.ID == "bank" {
		zero := &syntax.Number{Pos: e.Pos, Width: 1}
		f.add(e.Pos, "bank", "always bank 0 in "+syntax.Print(e), func() { e.X = zero }, func() { e.X = n })
	}
	f.expr(e.X, func(x syntax.Expr) { e.X = x })
	f.expr(e.Y, func(x syntax.Expr) { e.Y = x })
}

// slice moved by one bit.
func (f *finder) slice(e *syntax.Slice) {
	hi, ok := e.Hi.(*syntax.Number)
	lo, ok2 := e.Lo.(*syntax.Number)
	if !ok || !ok2 {
		return
	}
	by := int64(-1)
	if lo.Value == 0 {
		by = 1
	}
	h, l := hi.Value, lo.Value
	f.add(e.Pos, "slice", fmt.Sprintf("%s by %d", syntax.Print(e), by), func() {
		hi.Value, lo.Value = uint64(int64(h)+by), uint64(int64(l)+by)
	}, func() { hi.Value, lo.Value = h, l })
}

func (f *finder) state(s *syntax.State) {
	for i, c := range s.Next.Cases {
		if _, rest := c.Keys[0].(*syntax.Any); rest {
			continue
		}
		was, less := s.Next.Cases, append(append([]*syntax.Case(nil), s.Next.Cases[:i]...), s.Next.Cases[i+1:]...)
		f.add(c.Pos, "parser", fmt.Sprintf("without %s to %s", s.Name, c.To), func() { s.Next.Cases = less }, func() { s.Next.Cases = was })
	}
}
