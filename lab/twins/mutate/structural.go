package mutate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// StructuralKinds are kinds of differences in which registers a program reaches, when, and what index and value depend on.
var StructuralKinds = []string{"dropped access", "swapped stage", "dropped condition", "added condition", "index", "written", "width", "initial value", "entries",
	"extra register"}

// structural walks the controls that a program applies.
type structural struct {
	bugs     map[string][]*Bug
	controls map[string]*syntax.Control
	stages   map[string]int // of registers, on the host
	in       *syntax.Control
	where    string
}

// FindStructural lists the structural differences that could be planted. stages are those of the host's arrays: two accesses change places only
// where the host has them in different stages.
func FindStructural(p *syntax.Program, used []string, stages map[string]int) map[string][]*Bug {
	f := &structural{bugs: map[string][]*Bug{}, controls: map[string]*syntax.Control{}, stages: stages}
	for _, d := range p.Decls {
		if c, ok := d.(*syntax.Control); ok && !c.IsParser {
			f.controls[c.Name] = c
		}
	}
	for _, d := range p.Decls {
		if c, ok := d.(*syntax.Control); ok && !c.IsParser && slices.Contains(used, c.Name) {
			f.in, f.where = c, c.Name
			f.control(c)
		}
	}
	return f.bugs
}

func (f *structural) add(at syntax.Pos, kind, what string, plant, remove func()) {
	f.bugs[kind] = append(f.bugs[kind], &Bug{Pos: at, Kind: kind, What: f.where + ": " + what, Plant: plant, Remove: remove})
}

func (f *structural) control(c *syntax.Control) {
	for _, d := range c.Locals {
		switch d := d.(type) {
		case *syntax.Instance:
			f.instance(d)
		case *syntax.Action:
			f.accesses(d.Body)
		case *syntax.Table:
			f.keys(d)
		}
	}
	f.accesses(c.Apply)
	f.swaps(c.Apply)
	if f.headers() {
		f.conditions(c.Apply)
	}
	if len(f.reached(c.Apply)) > 0 {
		f.extra(c)
	}
}

// instance: polynomials of rows, and registers.
func (f *structural) instance(i *syntax.Instance) {
	switch i.Type.Name {
	case "CRCPolynomial":
		if n, ok := i.Args[0].(*syntax.Number); ok {
			was, other := n.Value, uint64(0x1EDC6F41)
			if was == other {
				other = 0x04C11DB7
			}
			f.add(n.Pos, "index", "another row's polynomial for "+i.Name, func() { n.Value = other }, func() { n.Value = was })
		}
	case "Register":
		f.register(i)
	case "RegisterAction":
		f.written(i)
	}
}

func (f *structural) register(i *syntax.Instance) {
	t := i.Type.Args[0]
	if t.Name == "bit" {
		i, was := i, i.Type.Args[0]
		half := &syntax.Binary{Pos: t.Pos, Op: "/", X: was.Width, Y: &syntax.Number{Pos: t.Pos, Value: 2}}
		narrow := &syntax.Type{Pos: t.Pos, Name: "bit", Width: half}
		f.add(t.Pos, "width", i.Name+" of half the bits", func() { i.Type.Args[0] = narrow }, func() { i.Type.Args[0] = was })
	}
	if n, ok := i.Args[1].(*syntax.Number); ok {
		was := n.Value
		f.add(n.Pos, "initial value", i.Name+" begins with another number", func() { n.Value = was + 3 }, func() { n.Value = was })
	}
	size := i.Args[0]
	double := &syntax.Binary{Pos: size.At(), Op: "*", X: size, Y: &syntax.Number{Value: 2}}
	f.add(i.Pos, "entries", "twice as many of "+i.Name, func() { i.Args[0] = double }, func() { i.Args[0] = size })
}

// written: what a RegisterAction stores is a constant.
func (f *structural) written(i *syntax.Instance) {
	body := i.Methods[0]
	memory := body.Params[0].Name
	f.each(body.Body, func(b *syntax.Block, n int) {
		a, ok := b.Stmts[n].(*syntax.Assign)
		if !ok || root(a.L) != memory || constant(a.R) {
			return
		}
		was := a.R
		f.add(a.Pos, "written", fmt.Sprintf("%s: 0 for %s in %s", i.Name, syntax.Print(was), syntax.Print(a.L)), func() { a.R = &syntax.Number{Pos: a.Pos} }, func() { a.R = was })
	})
}

func root(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Name:
		return e.ID
	case *syntax.Field:
		return root(e.X)
	case *syntax.Slice:
		return root(e.X)
	}
	return ""
}

func constant(e syntax.Expr) bool {
	switch e := e.(type) {
	case *syntax.Number:
		return true
	case *syntax.Name:
		return strings.ToUpper(e.ID) == e.ID
	}
	return false
}

// each statement, with the block that it stands in.
func (f *structural) each(b *syntax.Block, do func(b *syntax.Block, n int)) {
	for n := range b.Stmts {
		do(b, n)
		switch s := b.Stmts[n].(type) {
		case *syntax.Block:
			f.each(s, do)
		case *syntax.If:
			f.each(s.Then, do)
			if e, ok := s.Else.(*syntax.Block); ok {
				f.each(e, do)
			} else if s.Else != nil {
				f.each(&syntax.Block{Stmts: []syntax.Stmt{s.Else}}, do)
			}
		}
	}
}

// accesses: a RegisterAction that is executed no more, or always at one place.
func (f *structural) accesses(b *syntax.Block) {
	f.each(b, func(b *syntax.Block, n int) {
		at := b.Stmts[n]
		var call *syntax.Call
		switch s := at.(type) {
		case *syntax.Do:
			call = s.Call
		case *syntax.Assign:
			call, _ = s.R.(*syntax.Call)
		}
		if call == nil {
			return
		}
		if m, ok := call.Fn.(*syntax.Field); ok && m.Name == "execute" {
			nothing := &syntax.Block{}
			f.add(call.Pos, "dropped access", syntax.Print(call), func() { b.Stmts[n] = nothing }, func() { b.Stmts[n] = at })
			i := len(call.Args) - 1 // of a filter the second one
			if was := call.Args[i]; !constant(was) {
				f.add(call.Pos, "index", "0 for "+syntax.Print(was)+" in "+syntax.Print(call), func() { call.Args[i] = &syntax.Number{Pos: call.Pos} }, func() { call.Args[i] = was })
			}
		}
	})
}

// keys: a part of a key that no entry looks at, of a table that decides over accesses.
func (f *structural) keys(t *syntax.Table) {
	if !t.ConstEntries || len(f.ofTable(f.in, t)) == 0 {
		return
	}
	for i, k := range t.Keys {
		var was []syntax.Expr
		for _, e := range t.Entries {
			was = append(was, e.Keys[i])
		}
		if !slices.ContainsFunc(was, func(e syntax.Expr) bool { _, any := e.(*syntax.Any); return !any }) {
			continue
		}
		f.add(k.X.At(), "dropped condition", fmt.Sprintf("key %s of %s", syntax.Print(k.X), t.Name), func() {
			for _, e := range t.Entries {
				e.Keys[i] = &syntax.Any{}
			}
		}, func() {
			for n, e := range t.Entries {
				e.Keys[i] = was[n]
			}
		})
	}
}

// headers reports whether the control has the packet's headers by their usual name.
func (f *structural) headers() bool {
	return slices.ContainsFunc(f.in.Params, func(p *syntax.Param) bool { return p.Name == "hdr" && p.Type.Name == "headers_t" })
}

// conditions: an access for some packets only.
func (f *structural) conditions(b *syntax.Block) {
	f.each(b, func(b *syntax.Block, n int) {
		at := b.Stmts[n]
		if do, ok := at.(*syntax.Do); !ok || len(f.ofCall(f.in, do.Call)) == 0 {
			return
		}
		ttl := &syntax.Field{X: &syntax.Field{X: &syntax.Name{ID: "hdr"}, Name: "ipv4"}, Name: "ttl"}
		only := &syntax.If{Cond: &syntax.Binary{Op: "==", X: ttl, Y: &syntax.Number{Value: 64}}, Then: &syntax.Block{Stmts: []syntax.Stmt{at}}}
		f.add(at.At(), "added condition", "hdr.ipv4.ttl == 64 for "+syntax.Print(at.(*syntax.Do).Call), func() { b.Stmts[n] = only }, func() { b.Stmts[n] = at })
	})
}

// swaps: two accesses that follow each other, in stages that do.
func (f *structural) swaps(b *syntax.Block) {
	f.each(b, func(b *syntax.Block, n int) {
		for m := n + 1; m < len(b.Stmts) && m < n+4; m++ {
			first, second := f.of(f.in, b.Stmts[n]), f.of(f.in, b.Stmts[m])
			if len(first) == 0 || len(second) == 0 || f.latest(first) >= f.earliest(second) {
				continue
			}
			swap := func() { b.Stmts[n], b.Stmts[m] = b.Stmts[m], b.Stmts[n] }
			f.add(b.Stmts[n].At(), "swapped stage", strings.Join(first, " ")+" and "+strings.Join(second, " "), swap, swap)
		}
	})
}

func (f *structural) latest(registers []string) int {
	stage := -1
	for _, r := range registers {
		stage = max(stage, f.stages[r])
	}
	return stage
}

func (f *structural) earliest(registers []string) int {
	stage := 1 << 30
	for _, r := range registers {
		stage = min(stage, f.stages[r])
	}
	return stage
}

// extra is a register that the host has not.
func (f *structural) extra(c *syntax.Control) {
	pos := c.Pos
	word := func() *syntax.Type {
		return &syntax.Type{Pos: pos, Name: "bit", Width: &syntax.Number{Pos: pos, Value: 32}}
	}
	name := func(id string) *syntax.Name { return &syntax.Name{Pos: pos, ID: id} }
	register := &syntax.Instance{Pos: pos, Name: "planted", Type: &syntax.Type{Pos: pos, Name: "Register", Args: []*syntax.Type{word(), word()}},
		Args: []syntax.Expr{&syntax.Number{Pos: pos, Value: 16}, &syntax.Number{Pos: pos}}}
	add := &syntax.Action{Pos: pos, Name: "apply", Params: []*syntax.Param{{Pos: pos, Dir: "inout", Type: word(), Name: "v"}},
		Body: &syntax.Block{Stmts: []syntax.Stmt{&syntax.Assign{Pos: pos, L: name("v"), R: &syntax.Binary{Op: "+", X: name("v"), Y: &syntax.Number{Value: 1}}}}}}
	action := &syntax.Instance{Pos: pos, Name: "add_planted", Type: &syntax.Type{Pos: pos, Name: "RegisterAction", Args: []*syntax.Type{word(), word(), word()}},
		Args: []syntax.Expr{name("planted")}, Methods: []*syntax.Action{add}}
	call := &syntax.Do{Pos: pos, Call: &syntax.Call{Pos: pos, Fn: &syntax.Field{X: name("add_planted"), Name: "execute"}, Args: []syntax.Expr{&syntax.Number{}}}}
	locals, body := c.Locals, c.Apply.Stmts
	f.add(pos, "extra register", "planted", func() {
		c.Locals = append(slices.Clone(locals), register, action)
		c.Apply.Stmts = append(slices.Clone(body), call)
	}, func() { c.Locals, c.Apply.Stmts = locals, body })
}

// reached are the registers of the host that a block of the control reaches.
func (f *structural) reached(b *syntax.Block) []string { return f.of(f.in, b) }

func (f *structural) of(c *syntax.Control, s syntax.Stmt) (out []string) {
	switch s := s.(type) {
	case *syntax.Block:
		if s == nil {
			return nil
		}
		for _, one := range s.Stmts {
			out = append(out, f.of(c, one)...)
		}
	case *syntax.If:
		out = f.of(c, s.Then)
		if s.Else != nil {
			out = append(out, f.of(c, s.Else)...)
		}
	case *syntax.Do:
		out = f.ofCall(c, s.Call)
	case *syntax.Assign:
		if call, ok := s.R.(*syntax.Call); ok {
			out = f.ofCall(c, call)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ofCall finds what a call of the control's own actions, tables, controls and RegisterActions reaches.
func (f *structural) ofCall(c *syntax.Control, call *syntax.Call) []string {
	if name, ok := call.Fn.(*syntax.Name); ok {
		return f.ofAction(c, name.ID)
	}
	m, ok := call.Fn.(*syntax.Field)
	if !ok {
		return nil
	}
	object, ok := m.X.(*syntax.Name)
	if !ok {
		return nil
	}
	for _, d := range c.Locals {
		switch d := d.(type) {
		case *syntax.Table:
			if d.Name == object.ID {
				return f.ofTable(c, d)
			}
		case *syntax.Instance:
			if d.Name != object.ID {
				continue
			}
			if in := f.controls[d.Type.Name]; in != nil {
				return f.of(in, in.Apply)
			}
			if d.Type.Name == "Lpf" {
				return f.known(d.Name)
			}
			if d.Type.Name == "RegisterAction" {
				return f.known(d.Args[0].(*syntax.Name).ID)
			}
		}
	}
	return nil
}

func (f *structural) known(register string) []string {
	if _, ok := f.stages[register]; ok {
		return []string{register}
	}
	return nil
}

func (f *structural) ofAction(c *syntax.Control, name string) []string {
	for _, d := range c.Locals {
		if a, ok := d.(*syntax.Action); ok && a.Name == name {
			return f.of(c, a.Body)
		}
	}
	return nil
}

func (f *structural) ofTable(c *syntax.Control, t *syntax.Table) (out []string) {
	for _, a := range t.Actions {
		out = append(out, f.ofAction(c, a.ID)...)
	}
	return out
}
