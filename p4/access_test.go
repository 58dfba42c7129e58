package p4

import (
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// places lists, for registers by their path, where one packet may reach them: the most places on any way through what was
// read. The compiler accepts two tables that may both run; two places here are one access too many. Tables exclude each other
// by if and else only: what their keys exclude is not looked at, and an action that was called twice counts twice.
type places map[string][]string

// then is what follows p.
func (p places) then(next places) places {
	out := maps.Clone(p)
	for register, at := range next {
		out[register] = append(append([]string(nil), out[register]...), at...)
	}
	return out
}

// or is what runs instead of p.
func (p places) or(other places) places {
	out := maps.Clone(p)
	for register, at := range other {
		if len(at) > len(out[register]) {
			out[register] = at
		}
	}
	return out
}

// flowBody is a control while it is read, at its path in the program.
type flowBody struct {
	controls  map[string]*syntax.Control
	path      string
	registers map[string]bool
	owner     map[string]string // RegisterAction -> register
	actions   map[string]*syntax.Action
	tables    map[string]*syntax.Table
	instances map[string]*syntax.Control
}

// reached walks the ingress and egress of a program.
func reached(program *syntax.Program) places {
	controls := map[string]*syntax.Control{}
	for _, d := range program.Decls {
		if c, ok := d.(*syntax.Control); ok && !c.IsParser {
			controls[c.Name] = c
		}
	}
	out := places{}
	for _, name := range []string{"Ingress", "Egress"} {
		if c, ok := controls[name]; ok {
			out = out.then(readControl(controls, c, name+"."))
		}
	}
	return out
}

func readControl(controls map[string]*syntax.Control, c *syntax.Control, path string) places {
	b := &flowBody{controls: controls, path: path, registers: map[string]bool{}, owner: map[string]string{},
		actions: map[string]*syntax.Action{}, tables: map[string]*syntax.Table{}, instances: map[string]*syntax.Control{}}
	for _, d := range c.Locals {
		switch d := d.(type) {
		case *syntax.Action:
			b.actions[d.Name] = d
		case *syntax.Table:
			b.tables[d.Name] = d
		case *syntax.Instance:
			b.instance(d)
		}
	}
	return b.statement(c.Apply)
}

func (b *flowBody) instance(i *syntax.Instance) {
	switch name := i.Type.Name; {
	case name == "Register", name == "Lpf":
		b.registers[i.Name] = true
	case name == "RegisterAction":
		b.owner[i.Name] = i.Args[0].(*syntax.Name).ID
	case b.controls[name] != nil:
		b.instances[i.Name] = b.controls[name]
	}
}

func (b *flowBody) statement(s syntax.Stmt) places {
	out := places{}
	switch s := s.(type) {
	case *syntax.Block:
		for _, one := range s.Stmts {
			out = out.then(b.statement(one))
		}
	case *syntax.If:
		out = places{}.or(b.statement(s.Then))
		if s.Else != nil {
			out = out.or(b.statement(s.Else))
		}
		out = b.expression(s.Cond).then(out)
	case *syntax.Assign:
		out = b.expression(s.L).then(b.expression(s.R))
	case *syntax.Do:
		out = b.call(s.Call)
	case *syntax.Var:
		if s.Init != nil {
			out = b.expression(s.Init)
		}
	}
	return out
}

func (b *flowBody) expression(e syntax.Expr) places {
	switch e := e.(type) {
	case *syntax.Call:
		return b.call(e)
	case *syntax.Field:
		return b.expression(e.X)
	case *syntax.Slice:
		return b.expression(e.X)
	case *syntax.Unary:
		return b.expression(e.X)
	case *syntax.Cast:
		return b.expression(e.X)
	case *syntax.Binary:
		return b.expression(e.X).then(b.expression(e.Y))
	case *syntax.Choice:
		return b.expression(e.C).then(b.expression(e.X).or(b.expression(e.Y)))
	}
	return places{}
}

// call of an action, or of a method of a table, a control, a register or one of its actions.
func (b *flowBody) call(c *syntax.Call) places {
	out := places{}
	for _, a := range c.Args {
		out = out.then(b.expression(a))
	}
	if name, ok := c.Fn.(*syntax.Name); ok {
		return out.then(b.action(name.ID))
	}
	method, ok := c.Fn.(*syntax.Field)
	if !ok {
		return out
	}
	object, ok := method.X.(*syntax.Name)
	if !ok {
		return out.then(b.expression(method.X))
	}
	at := c.At().String()
	switch {
	case b.registers[object.ID]:
		return out.then(places{b.path + object.ID: {at}})
	case b.owner[object.ID] != "":
		return out.then(places{b.path + b.owner[object.ID]: {at}})
	case b.tables[object.ID] != nil:
		return out.then(b.table(b.tables[object.ID]))
	case b.instances[object.ID] != nil:
		return out.then(readControl(b.controls, b.instances[object.ID], b.path+object.ID+"."))
	}
	return out
}

func (b *flowBody) action(name string) places {
	if a, ok := b.actions[name]; ok {
		return b.statement(a.Body)
	}
	return places{}
}

// table runs one of its actions.
func (b *flowBody) table(t *syntax.Table) places {
	out := places{}
	for _, a := range t.Actions {
		out = out.or(b.action(a.ID))
	}
	return out
}

// eachForm runs a test for every twin in every form, for both chips.
func eachForm(t *testing.T, test func(t *testing.T, twin string, form Form, target run.Target)) {
	for _, twin := range twins(t) {
		for _, form := range Forms(twin) {
			for _, target := range []run.Target{run.Tofino1, run.Tofino2} {
				test(t, twin, form, target)
			}
		}
	}
}

// TestOnePlaceARegister: no packet can reach a register twice, in any form.
func TestOnePlaceARegister(t *testing.T) {
	eachForm(t, func(t *testing.T, twin string, form Form, target run.Target) {
		program, err := run.Read(Sources, twin+"/top.p4", target, form)
		if err != nil {
			t.Fatal(err)
		}
		found := reached(program)
		if len(found) == 0 {
			t.Errorf("%s %s, Tofino %d: no register is reached", twin, form, target)
		}
		for register, at := range found {
			if len(at) > 1 {
				t.Errorf("%s %s, Tofino %d: a packet may reach %s at %s", twin, form, target, register, strings.Join(at, " and "))
			}
		}
	})
}

// TestSecondPlaceIsSeen keeps that check honest: every way to reach a register twice is seen, and exclusive ones are not.
func TestSecondPlaceIsSeen(t *testing.T) {
	const head = `control C(in bit<4> i, in bit<4> k) {
Register<bit<32>, bit<4>>(16, 0) r;
RegisterAction<bit<32>, bit<4>, bit<32>>(r) get = { void apply(inout bit<32> v, out bit<32> o) { o = v; } };
RegisterAction<bit<32>, bit<4>, bit<32>>(r) put = { void apply(inout bit<32> v) { v = 1; } };
action a() { get.execute(i); }
action b() { put.execute(i); }
action both() { a(); b(); }
table one { key = { k : exact; } actions = { a; b; } const default_action = a(); }
table two { key = { k : exact; } actions = { b; } const default_action = b(); }
table three { key = { k : exact; } actions = { both; } const default_action = both(); }
`
	for name, c := range map[string]struct {
		apply string
		want  int
	}{
		"one table":        {"one.apply();", 1},
		"two tables":       {"one.apply(); two.apply();", 2},
		"exclusive":        {"if (k == 1) { one.apply(); } else { two.apply(); }", 1},
		"if without else":  {"if (k == 1) { one.apply(); } two.apply();", 2},
		"one action twice": {"three.apply();", 2},
		"outside of it":    {"one.apply(); put.execute(i);", 2},
		"in an action":     {"a(); b();", 2},
	} {
		text := head + "apply { " + c.apply + " }\n}\ncontrol Ingress(in bit<4> i) { C() c; apply { c.apply(i, i); } }\n"
		if at := placesOf(t, text)["Ingress.c.r"]; len(at) != c.want {
			t.Errorf("%s: %d places %v, want %d", name, len(at), at, c.want)
		}
	}
	twice := head + "apply { one.apply(); }\n}\ncontrol Ingress(in bit<4> i) { C() c; C() d; apply { c.apply(i, i); d.apply(i, i); c.apply(i, i); } }\n"
	if found := placesOf(t, twice); len(found["Ingress.c.r"]) != 2 || len(found["Ingress.d.r"]) != 1 {
		t.Errorf("a control that is applied twice: %v", found)
	}
}

func placesOf(t *testing.T, text string) places {
	t.Helper()
	program, err := syntax.Parse(syntax.Source{Files: fstest.MapFS{"top.p4": {Data: []byte(text)}}, Top: "top.p4"})
	if err != nil {
		t.Fatal(err)
	}
	return reached(program)
}

var applyCall = regexp.MustCompile(`\b(\w+)\.apply\(`)

// inFlow lists the registers in the order in which the twin's main control, and the controls that it applies, apply those that hold them.
func (s *source) inFlow(t *testing.T, twin string) []register {
	t.Helper()
	held := map[string][]register{} // by control
	for name, control := range s.owner {
		held[control] = append(held[control], s.registers[name])
	}
	of := map[string]string{} // instance -> control
	for _, m := range instanceDecl.FindAllStringSubmatch(s.text, -1) {
		of[m[3]] = m[1]
	}
	var flow []register
	bodies := blocks(s.text, controlDecl)
	var walk func(control string)
	walk = func(control string) {
		text := bodies[control]
		delete(bodies, control) // a table may be called as an instance elsewhere
		for _, m := range applyCall.FindAllStringSubmatch(text, -1) {
			flow = append(flow, held[of[m[1]]]...)
			delete(held, of[m[1]]) // the second of two exclusive instances
			walk(of[m[1]])
		}
	}
	for _, end := range []string{"", "leaving"} { // a main control of the egress, too
		for name := range maps.Clone(bodies) {
			if strings.EqualFold(name, twin+end) {
				walk(name)
			}
		}
	}
	if len(flow) != len(s.registers) {
		t.Fatalf("%s: the control applies %d registers of %d", twin, len(flow), len(s.registers))
	}
	return flow
}

// blocks returns the bodies in braces after the matches of a declaration, by the declared name.
func blocks(text string, decl *regexp.Regexp) map[string]string {
	found := map[string]string{}
	for _, at := range decl.FindAllStringSubmatchIndex(text, -1) {
		found[text[at[2]:at[3]]] = body(text[at[1]:])
	}
	return found
}

// body is the text up to the brace that closes the one just before it.
func body(text string) string {
	depth := 1
	end := strings.IndexFunc(text, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		return depth == 0
	})
	if end < 0 {
		return text
	}
	return text[:end]
}
