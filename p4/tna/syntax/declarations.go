package syntax

import "strings"

// Parse reads a program.
func Parse(src Source) (program *Program, err error) {
	defer Catch(&err)
	library := map[string]string{}
	for name, text := range src.Library {
		library[name] = text
	}
	src.Library = library
	g := &grammar{tokens: preprocess(src), types: map[string]bool{}, end: Pos{File: src.Top}}
	program = &Program{}
	for g.peek().kind != kindEnd {
		if d := g.top(); d != nil {
			program.Decls = append(program.Decls, d)
		}
	}
	return program, nil
}

// notes are the annotations before a declaration: hints to the compiler, with one exception.
type notes struct{ noShare []string }

func (g *grammar) notes() (n notes) {
	for g.found("@") {
		what := g.name()
		switch what.ID {
		case "stage", "pragma", "padding", "name", "flexible", "ternary", "hidden", "pa_no_overlay", "pa_container_size", "pa_solitary", "defaultonly", "tableonly":
		default:
			Throw(what.Pos, "@%s is outside of the model", what.ID)
		}
		if !g.found("(") {
			continue
		}
		var last string
		for depth := 1; depth > 0; {
			t := g.next()
			switch {
			case t.kind == kindEnd:
				Throw(what.Pos, "@%s( does not end", what.ID)
			case t.is("("):
				depth++
			case t.is(")"):
				depth--
			case t.kind == kindString:
				last = strings.Trim(t.text, `"`)
			}
		}
		if what.ID == "pa_no_overlay" {
			n.noShare = append(n.noShare, last)
		}
	}
	return n
}

func (g *grammar) top() Decl {
	n := g.notes()
	t := g.peek()
	switch t.text {
	case "const":
		return g.constant()
	case "typedef":
		return g.typedef()
	case "struct", "header":
		return g.structure()
	case "enum":
		return g.enum()
	case "control", "parser":
		c := g.control()
		c.NoShare = n.noShare
		return c
	case ";":
		g.next()
		return nil
	}
	return g.instance()
}

func (g *grammar) constant() Decl {
	at := g.want("const")
	c := &Const{Pos: at, Type: g.typeName(), Name: g.name().ID}
	g.want("=")
	c.Value = g.expression()
	g.want(";")
	return c
}

func (g *grammar) typedef() Decl {
	d := &Typedef{Pos: g.want("typedef"), Type: g.typeName(), Name: g.name().ID}
	g.want(";")
	g.types[d.Name] = true
	return d
}

func (g *grammar) structure() Decl {
	t := g.next()
	s := &Struct{Pos: t.Pos, Header: t.text == "header", Name: g.name().ID}
	g.types[s.Name] = true
	g.want("{")
	for !g.found("}") {
		g.notes()
		f := &Param{Pos: g.peek().Pos, Type: g.typeName(), Name: g.name().ID}
		g.want(";")
		s.Fields = append(s.Fields, f)
	}
	return s
}

func (g *grammar) enum() Decl {
	e := &Enum{Pos: g.want("enum")}
	if g.isType(g.peek()) && !g.ahead(1).is("{") {
		e.Type = g.typeName()
	}
	e.Name = g.name().ID
	g.types[e.Name] = true
	g.want("{")
	for !g.found("}") {
		e.Members = append(e.Members, g.name().ID)
		if g.found("=") {
			e.Values = append(e.Values, g.expression())
		}
		if !g.peek().is("}") {
			g.want(",")
		}
	}
	if e.Type != nil && len(e.Values) != len(e.Members) {
		Throw(e.Pos, "enum %s has a type, so each member needs a value", e.Name)
	}
	return e
}

func (g *grammar) params() []*Param {
	g.want("(")
	var all []*Param
	for !g.found(")") {
		if len(all) > 0 {
			g.want(",")
		}
		p := &Param{Pos: g.peek().Pos}
		for _, dir := range []string{"inout", "in", "out"} {
			if g.peek().text == dir {
				p.Dir = g.next().text
				break
			}
		}
		p.Type, p.Name = g.typeName(), g.name().ID
		all = append(all, p)
	}
	return all
}

func (g *grammar) control() *Control {
	t := g.next()
	c := &Control{Pos: t.Pos, IsParser: t.text == "parser", Name: g.name().ID}
	g.types[c.Name] = true
	c.Params = g.params()
	if g.peek().is("(") {
		c.Ctor = g.params()
	}
	g.want("{")
	for !g.found("}") {
		g.member(c)
	}
	if !c.IsParser && c.Apply == nil {
		Throw(c.Pos, "control %s has no apply", c.Name)
	}
	return c
}

func (g *grammar) member(c *Control) {
	g.notes()
	t := g.peek()
	switch {
	case t.text == "action":
		g.next()
		c.Locals = append(c.Locals, g.action())
	case t.text == "table":
		c.Locals = append(c.Locals, g.table())
	case t.text == "apply":
		g.next()
		if c.Apply != nil {
			Throw(t.Pos, "a second apply")
		}
		c.Apply = g.block()
	case t.text == "state" && c.IsParser:
		c.States = append(c.States, g.state())
	case t.text == "const":
		c.Locals = append(c.Locals, g.constant())
	default:
		c.Locals = append(c.Locals, g.variableOrInstance())
	}
}

// variableOrInstance distinguishes `bit<1> x = 0;` from `Control(args) name;`.
func (g *grammar) variableOrInstance() Decl {
	at, typ := g.peek().Pos, g.typeName()
	if g.peek().is("(") {
		return g.instanceOf(at, typ)
	}
	return g.variable(at, typ)
}

func (g *grammar) variable(at Pos, typ *Type) *Var {
	v := &Var{Pos: at, Type: typ, Name: g.name().ID}
	if g.found("=") {
		v.Init = g.expression()
	}
	g.want(";")
	return v
}

func (g *grammar) instance() Decl {
	at := g.peek().Pos
	return g.instanceOf(at, g.typeName())
}

func (g *grammar) instanceOf(at Pos, typ *Type) Decl {
	g.want("(")
	i := &Instance{Pos: at, Type: typ, Args: g.list(")", g.expression), Name: g.name().ID}
	if g.found("=") {
		g.want("{")
		for !g.found("}") {
			g.want("void")
			i.Methods = append(i.Methods, g.action())
		}
	}
	g.want(";")
	return i
}

func (g *grammar) action() *Action {
	n := g.name()
	return &Action{Pos: n.Pos, Name: n.ID, Params: g.params(), Body: g.block()}
}

func (g *grammar) block() *Block {
	b := &Block{Pos: g.want("{")}
	for !g.found("}") {
		b.Stmts = append(b.Stmts, g.statement())
	}
	return b
}

func (g *grammar) statement() Stmt {
	t := g.peek()
	switch {
	case t.is("{"):
		return g.block()
	case t.text == "if":
		return g.branch()
	case t.text == "const":
		return g.constant()
	case g.isType(t):
		return g.variable(t.Pos, g.typeName())
	case t.text == "switch":
		return g.choose()
	case t.text == "return" || t.text == "exit" || t.text == "for":
		Throw(t.Pos, "`%s` is outside of the model", t.text)
	}
	x := g.unary()
	if at := g.peek().Pos; g.found("=") {
		r := g.expression()
		g.want(";")
		return &Assign{Pos: at, L: x, R: r}
	}
	g.want(";")
	call, ok := x.(*Call)
	if !ok {
		Throw(t.Pos, "a statement that does nothing")
	}
	return &Do{Pos: t.Pos, Call: call}
}

func (g *grammar) branch() Stmt {
	s := &If{Pos: g.want("if")}
	g.want("(")
	s.Cond = g.expression()
	g.want(")")
	s.Then = g.block()
	if g.found("else") {
		if g.peek().text == "if" {
			s.Else = g.branch()
		} else {
			s.Else = g.block()
		}
	}
	return s
}

// choose reads a switch. A label without a block shares the next one.
func (g *grammar) choose() Stmt {
	s := &Switch{Pos: g.want("switch")}
	g.want("(")
	s.X = g.expression()
	g.want(")")
	g.want("{")
	var labels []*Name
	for at := g.peek().Pos; !g.found("}"); at = g.peek().Pos {
		if g.found("default") {
			labels = append(labels, nil)
		} else {
			labels = append(labels, g.name())
		}
		g.want(":")
		if g.peek().is("{") {
			s.Cases = append(s.Cases, &Labelled{Pos: at, Labels: labels, Body: g.block()})
			labels = nil
		}
	}
	if labels != nil {
		Throw(s.Pos, "the last label of a switch has no block")
	}
	return s
}

func (g *grammar) table() Decl {
	t := &Table{Pos: g.want("table"), Name: g.name().ID}
	g.want("{")
	for !g.found("}") {
		constant := g.found("const")
		what := g.name()
		g.want("=")
		switch what.ID {
		case "key":
			t.Keys = g.keys()
		case "actions":
			t.Actions = g.actionNames()
		case "entries":
			t.Entries, t.ConstEntries = g.entries(), constant
		case "default_action":
			t.Default, t.ConstDefault = g.actionCall(), constant
			g.want(";")
		case "size":
			t.Size = g.expression()
			g.want(";")
		case "counters":
			t.Counters = g.name()
			g.want(";")
		default:
			Throw(what.Pos, "a table's `%s` is outside of the model", what.ID)
		}
	}
	return t
}

func (g *grammar) keys() []*Key {
	g.want("{")
	var all []*Key
	for !g.found("}") {
		k := &Key{Pos: g.peek().Pos, X: g.expression()}
		g.want(":")
		k.Kind = g.name().ID
		g.notes()
		g.want(";")
		all = append(all, k)
	}
	return all
}

func (g *grammar) actionNames() []*Name {
	g.want("{")
	var all []*Name
	for !g.found("}") {
		g.notes()
		all = append(all, g.name())
		g.want(";")
	}
	return all
}

func (g *grammar) actionCall() *Call {
	n := g.name()
	c := &Call{Pos: n.Pos, Fn: n}
	if g.found("(") {
		c.Args = g.list(")", g.expression)
	}
	return c
}

func (g *grammar) entries() []*Entry {
	g.want("{")
	var all []*Entry
	for !g.found("}") {
		e := &Entry{Pos: g.peek().Pos, Keys: g.keySet()}
		g.want(":")
		e.Action = g.actionCall()
		g.want(";")
		all = append(all, e)
	}
	return all
}

// keySet is one set, or several in parentheses.
func (g *grammar) keySet() []Expr {
	if t := g.peek(); t.is("(") && !g.isType(g.ahead(1)) {
		g.next()
		return g.list(")", g.set)
	}
	return []Expr{g.set()}
}

func (g *grammar) state() *State {
	s := &State{Pos: g.want("state"), Name: g.name().ID}
	g.want("{")
	for g.peek().text != "transition" {
		if g.found("}") {
			Throw(s.Pos, "state %s has no transition", s.Name)
		}
		s.Stmts = append(s.Stmts, g.statement())
	}
	s.Next = g.transition()
	g.want("}")
	return s
}

func (g *grammar) transition() *Transition {
	t := &Transition{Pos: g.want("transition")}
	if g.peek().text != "select" {
		t.To = g.name().ID
		g.want(";")
		return t
	}
	g.next()
	g.want("(")
	t.Keys = g.list(")", g.expression)
	g.want("{")
	for !g.found("}") {
		c := &Case{Pos: g.peek().Pos, Keys: g.keySet()}
		g.want(":")
		c.To = g.name().ID
		g.want(";")
		t.Cases = append(t.Cases, c)
	}
	return t
}
