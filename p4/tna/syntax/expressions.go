package syntax

// grammar is a recursive descent over expanded tokens.
type grammar struct {
	tokens []token
	at     int
	end    Pos
	types  map[string]bool // names declared as types: a cast or a declaration starts with one
}

var endToken = token{kind: kindEnd}

func (g *grammar) peek() *token { return g.ahead(0) }

func (g *grammar) ahead(n int) *token {
	if g.at+n >= len(g.tokens) {
		t := endToken
		t.Pos = g.end
		return &t
	}
	return &g.tokens[g.at+n]
}

func (g *grammar) next() *token {
	t := g.peek()
	g.at++
	return t
}

func (g *grammar) found(text string) bool {
	if t := g.peek(); t.text != text || t.kind != kindMark && t.kind != kindName {
		return false
	}
	g.at++
	return true
}

func (g *grammar) want(text string) Pos {
	t := g.peek()
	if !g.found(text) {
		Throw(t.Pos, "%s where `%s` is expected", t, text)
	}
	return t.Pos
}

func (g *grammar) name() *Name {
	t := g.next()
	if t.kind != kindName {
		Throw(t.Pos, "%s where a name is expected", t)
	}
	return &Name{Pos: t.Pos, ID: t.text}
}

// levels of binary operators, loosest first. P4's are C's, with ++ beside + and sets above all.
var levels = [][]string{{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", "<=", ">", ">="}, {"<<", ">>"},
	{"+", "-", "++", "|+|", "|-|"}, {"*", "/", "%"}}

func (g *grammar) expression() Expr {
	c := g.binary(0)
	if t := g.peek(); t.is("?") {
		g.next()
		x := g.expression()
		g.want(":")
		return &Choice{Pos: t.Pos, C: c, X: x, Y: g.expression()}
	}
	return c
}

func (g *grammar) binary(level int) Expr {
	if level == len(levels) {
		return g.unary()
	}
	x := g.binary(level + 1)
	for {
		op, at := g.operator(levels[level])
		if op == "" {
			return x
		}
		x = &Binary{Pos: at, Op: op, X: x, Y: g.binary(level + 1)}
	}
}

func (g *grammar) operator(among []string) (string, Pos) {
	t := g.peek()
	if t.kind != kindMark {
		return "", t.Pos
	}
	text := t.text
	shift := text == ">" && g.ahead(1).is(">") && !g.ahead(1).spaced
	if shift {
		text = ">>"
	}
	for _, op := range among {
		if op != text {
			continue
		}
		g.next()
		if shift {
			g.next()
		}
		return op, t.Pos
	}
	return "", t.Pos
}

// set is an expression where keys are matched.
func (g *grammar) set() Expr {
	t := g.peek()
	if g.found("_") || g.found("default") {
		return &Any{Pos: t.Pos}
	}
	x := g.expression()
	for _, op := range []string{"&&&", ".."} {
		if at := g.peek().Pos; g.found(op) {
			return &Binary{Pos: at, Op: op, X: x, Y: g.expression()}
		}
	}
	return x
}

func (g *grammar) unary() Expr {
	t := g.peek()
	for _, op := range []string{"-", "~", "!"} {
		if t.is(op) {
			g.next()
			return &Unary{Pos: t.Pos, Op: op, X: g.unary()}
		}
	}
	if t.is("(") && g.isType(g.ahead(1)) {
		g.next()
		typ := g.typeName()
		g.want(")")
		return &Cast{Pos: t.Pos, Type: typ, X: g.unary()}
	}
	return g.postfix(g.primary())
}

func (g *grammar) isType(t *token) bool {
	if t.kind != kindName {
		return false
	}
	return t.text == "bit" || t.text == "int" || t.text == "bool" || g.types[t.text]
}

func (g *grammar) primary() Expr {
	t := g.next()
	switch {
	case t.is("("):
		x := g.expression()
		g.want(")")
		return x
	case t.is("{"):
		return &List{Pos: t.Pos, Elems: g.list("}", g.expression)}
	case t.kind == kindNumber:
		return number(*t)
	case t.text == "true" || t.text == "false":
		return &Bool{Pos: t.Pos, Value: t.text == "true"}
	case t.kind == kindName:
		return &Name{Pos: t.Pos, ID: t.text}
	}
	Throw(t.Pos, "%s where an expression is expected", t)
	return nil
}

// list parses up to a closing mark; a trailing comma is allowed.
func (g *grammar) list(end string, one func() Expr) []Expr {
	var all []Expr
	for !g.found(end) {
		if len(all) > 0 {
			g.want(",")
			if g.found(end) {
				break
			}
		}
		all = append(all, one())
	}
	return all
}

func (g *grammar) postfix(x Expr) Expr {
	for {
		t := g.peek()
		switch {
		case t.is("."):
			g.next()
			x = &Field{Pos: t.Pos, X: x, Name: g.name().ID}
		case t.is("["):
			x = g.bracket(x)
		case t.is("("):
			g.next()
			x = &Call{Pos: t.Pos, Fn: x, Args: g.list(")", g.expression)}
		case t.is("<") && g.isType(g.ahead(1)): // x.lookahead<T>()
			types := g.typeArgs()
			at := g.want("(")
			x = &Call{Pos: at, Fn: x, Types: types, Args: g.list(")", g.expression)}
		default:
			return x
		}
	}
}

func (g *grammar) bracket(x Expr) Expr {
	at := g.want("[")
	i := g.expression()
	if g.found(":") {
		lo := g.expression()
		g.want("]")
		return &Slice{Pos: at, X: x, Hi: i, Lo: lo}
	}
	g.want("]")
	return &Index{Pos: at, X: x, I: i}
}

func (g *grammar) typeName() *Type {
	n := g.name()
	t := &Type{Pos: n.Pos, Name: n.ID}
	switch {
	case (n.ID == "bit" || n.ID == "int") && g.found("<"):
		t.Width = g.binary(8) // a > ends it
		g.want(">")
	case g.peek().is("<"):
		t.Args = g.typeArgs()
	}
	if g.peek().is("[") {
		g.next()
		t.Stack = g.expression()
		g.want("]")
	}
	return t
}

func (g *grammar) typeArgs() []*Type {
	g.want("<")
	all := []*Type{g.typeName()}
	for g.found(",") {
		all = append(all, g.typeName())
	}
	g.want(">")
	return all
}
