package syntax

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Source is a program's text: its location, the compiler's definitions, and the contents of <...> includes.
type Source struct {
	Files   fs.FS
	Top     string            // first file
	Define  map[string]string // as -D NAME=VALUE
	Library map[string]string // <name> -> text
}

type macro struct {
	params   []string
	function bool
	body     []token
}

// preprocessor expands a program into one list of tokens.
type preprocessor struct {
	src    Source
	macros map[string]*macro
	out    []token
	open   []*condition // the #if that are open
	depth  int
}

// condition is an #if: whether its text is active, and whether a branch already was.
type condition struct {
	Pos
	on, done, outer bool
}

const mostIncludes = 64

func preprocess(src Source) []token {
	p := &preprocessor{src: src, macros: map[string]*macro{}}
	for name, value := range src.Define {
		p.macros[name] = &macro{body: lex("-D "+name, value)}
	}
	p.file(Pos{File: src.Top, Line: 1}, src.Top)
	return p.out
}

func (p *preprocessor) file(at Pos, name string) {
	text, err := fs.ReadFile(p.src.Files, name)
	if err != nil {
		Throw(at, "cannot read %s: %v", name, err)
	}
	p.text(at, name, string(text))
}

func (p *preprocessor) text(at Pos, name, text string) {
	if p.depth++; p.depth > mostIncludes {
		Throw(at, "files include each other more than %d deep", mostIncludes)
	}
	before := len(p.open)
	for rest := lex(name, text); len(rest) > 0; {
		if rest[0].first && rest[0].is("#") {
			n := lineEnd(rest)
			p.directive(name, rest[1:n], rest[0].Pos)
			rest = rest[n:]
			continue
		}
		n := textEnd(rest)
		if p.on() {
			p.out = p.expandTo(p.out, rest[:n])
		}
		rest = rest[n:]
	}
	if len(p.open) != before {
		Throw(p.open[len(p.open)-1].Pos, "#if without #endif")
	}
	p.depth--
}

// lineEnd is the number of tokens on the first line.
func lineEnd(rest []token) int {
	for i := 1; i < len(rest); i++ {
		if rest[i].first {
			return i
		}
	}
	return len(rest)
}

// textEnd is the number of tokens up to the next directive.
func textEnd(rest []token) int {
	i := slices.IndexFunc(rest, func(t token) bool { return t.first && t.is("#") })
	if i < 0 {
		return len(rest)
	}
	return i
}

func (p *preprocessor) on() bool { return len(p.open) == 0 || p.open[len(p.open)-1].on }

func (p *preprocessor) directive(file string, line []token, at Pos) {
	if len(line) == 0 {
		Throw(at, "# without a directive")
	}
	rest := line[1:]
	switch line[0].text {
	case "if", "ifdef", "ifndef", "elif", "else", "endif":
		p.conditional(line[0].text, rest, at)
		return
	}
	if !p.on() {
		return
	}
	switch line[0].text {
	case "include":
		p.include(file, rest, at)
	case "define":
		p.define(rest, at)
	case "undef":
		delete(p.macros, name(rest, at))
	case "error":
		Throw(at, "#error %s", words(rest))
	default:
		Throw(at, "#%s is outside of the model", line[0].text)
	}
}

func (p *preprocessor) conditional(word string, rest []token, at Pos) {
	last := func() *condition {
		if len(p.open) == 0 {
			Throw(at, "#%s without #if", word)
		}
		return p.open[len(p.open)-1]
	}
	switch word {
	case "if", "ifdef", "ifndef":
		c := &condition{Pos: at, outer: p.on()}
		c.on = c.outer && p.holds(word, rest, at)
		c.done = c.on
		p.open = append(p.open, c)
	case "elif":
		c := last()
		c.on = c.outer && !c.done && p.holds("if", rest, at)
		c.done = c.done || c.on
	case "else":
		c := last()
		c.on, c.done = c.outer && !c.done, true
	case "endif":
		last()
		p.open = p.open[:len(p.open)-1]
	}
}

func (p *preprocessor) holds(word string, rest []token, at Pos) bool {
	if word != "if" {
		_, known := p.macros[name(rest, at)]
		return known == (word == "ifdef")
	}
	var line []token
	for i := 0; i < len(rest); i++ {
		if rest[i].text != "defined" {
			line = append(line, rest[i])
			continue
		}
		in := rest[i+1:]
		skip := 1
		if len(in) > 2 && in[0].is("(") && in[2].is(")") {
			in, skip = in[1:], 3
		}
		_, known := p.macros[name(in[:min(1, len(in))], at)]
		line = append(line, token{Pos: at, kind: kindNumber, text: map[bool]string{false: "0", true: "1"}[known]})
		i += skip
	}
	g := &grammar{tokens: p.expand(line), end: at}
	e := g.expression()
	if t := g.peek(); t.kind != kindEnd {
		Throw(at, "%s after the condition of #if", t)
	}
	return evaluate(e) != 0
}

// evaluate is the value of an #if; a name that is not defined is 0.
func evaluate(e Expr) int64 {
	switch e := e.(type) {
	case *Number:
		return int64(e.Value)
	case *Name:
		return 0
	case *Unary:
		x := evaluate(e.X)
		switch e.Op {
		case "-":
			return -x
		case "!":
			return truth(x == 0)
		}
	case *Binary:
		return calculate(e, evaluate(e.X), evaluate(e.Y))
	}
	Throw(e.At(), "an #if cannot have this")
	return 0
}

func calculate(e *Binary, x, y int64) int64 {
	switch e.Op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "&":
		return x & y
	case "|":
		return x | y
	case "<<":
		return x << uint64(y&63)
	case ">>":
		return x >> uint64(y&63)
	case "==":
		return truth(x == y)
	case "!=":
		return truth(x != y)
	case "<":
		return truth(x < y)
	case "<=":
		return truth(x <= y)
	case ">":
		return truth(x > y)
	case ">=":
		return truth(x >= y)
	case "&&":
		return truth(x != 0 && y != 0)
	case "||":
		return truth(x != 0 || y != 0)
	}
	Throw(e.At(), "an #if cannot have %s", e.Op)
	return 0
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func name(rest []token, at Pos) string {
	if len(rest) != 1 || rest[0].kind != kindName {
		Throw(at, "one name is expected here")
	}
	return rest[0].text
}

func words(rest []token) string {
	all := make([]string, len(rest))
	for i, t := range rest {
		all[i] = t.text
	}
	return strings.Join(all, " ")
}

func (p *preprocessor) include(file string, rest []token, at Pos) {
	if len(rest) == 1 && rest[0].kind == kindString {
		p.file(at, path.Join(path.Dir(file), strings.Trim(rest[0].text, `"`)))
		return
	}
	if len(rest) < 3 || !rest[0].is("<") || !rest[len(rest)-1].is(">") {
		Throw(at, `#include requires "file" or <file>`)
	}
	name := strings.ReplaceAll(words(rest[1:len(rest)-1]), " ", "")
	text, ok := p.src.Library[name]
	if !ok {
		Throw(at, "<%s> is outside of the model", name)
	}
	delete(p.src.Library, name) // a second #include adds nothing
	p.src.Library[name] = ""
	p.text(at, "<"+name+">", text)
}

func (p *preprocessor) define(rest []token, at Pos) {
	if len(rest) == 0 || rest[0].kind != kindName {
		Throw(at, "#define requires a name")
	}
	m := &macro{body: rest[1:]}
	if len(rest) > 1 && rest[1].is("(") && !rest[1].spaced {
		m.function = true
		m.params, m.body = parameters(rest[2:], at)
	}
	p.macros[rest[0].text] = m
}

func parameters(rest []token, at Pos) (params []string, body []token) {
	for i := 0; i+1 < len(rest); i += 2 {
		if rest[i].kind != kindName {
			break
		}
		params = append(params, rest[i].text)
		if rest[i+1].is(")") {
			return params, rest[i+2:]
		}
	}
	if len(rest) > 0 && rest[0].is(")") {
		return nil, rest[1:]
	}
	Throw(at, "the parameters of a macro do not end on its line")
	return nil, nil
}

// expand expands macros until none is left. A macro is not expanded within itself.
func (p *preprocessor) expand(in []token) []token { return p.expandTo(nil, in) }

// expandTo appends the expansion of in. A macro's expansion is scanned before what follows its use, and together with it only if its
// last name takes its arguments from there.
func (p *preprocessor) expandTo(out, in []token) []token {
	var after [][]token // innermost last
	for {
		if len(in) == 0 {
			if len(after) == 0 {
				return out
			}
			in, after = after[len(after)-1], after[:len(after)-1]
			continue
		}
		t := in[0]
		if t.kind != kindName {
			out, in = append(out, t), in[1:]
			continue
		}
		m, known := p.macros[t.text]
		if !known || slices.Contains(t.hidden, t.text) {
			out, in = append(out, t), in[1:]
			continue
		}
		for m.function && len(after) > 0 && !called(in[1:]) {
			in, after = slices.Concat(in, after[len(after)-1]), after[:len(after)-1]
		}
		if m.function && (len(in) < 2 || !in[1].is("(")) {
			out, in = append(out, t), in[1:]
			continue
		}
		rest, body := in[1:], m.body
		if m.function {
			var args [][]token
			args, rest = p.arguments(m, rest, t.Pos)
			body = p.substitute(m, args)
		}
		in, after = moved(paste(body), t), append(after, rest)
	}
}

// called reports whether it is known what follows the name of a macro: something other than arguments, or all of them.
func called(rest []token) bool {
	if len(rest) == 0 {
		return false
	}
	depth := 0
	for i := range rest {
		if rest[i].is("(") {
			depth++
		} else if rest[i].is(")") {
			depth--
		}
		if depth <= 0 {
			return true
		}
	}
	return false
}

// moved sets the position of a macro's tokens to its use.
func moved(body []token, use token) []token {
	out := slices.Clone(body)
	for i := range out {
		out[i].Pos, out[i].first = use.Pos, false
		out[i].hidden = append(append(slices.Clone(out[i].hidden), use.hidden...), use.text)
	}
	return out
}

func (p *preprocessor) arguments(m *macro, rest []token, at Pos) (args [][]token, behind []token) {
	depth, arg := 0, []token{}
	for i, t := range rest {
		switch {
		case depth == 1 && (t.is(",") || t.is(")")):
			args, arg = append(args, arg), []token{}
		case depth > 0:
			arg = append(arg, t)
		}
		if t.is("(") {
			depth++
		} else if t.is(")") {
			depth--
		}
		if depth > 0 {
			continue
		}
		if len(m.params) == 0 && len(args) == 1 && len(args[0]) == 0 {
			args = nil
		}
		if len(args) != len(m.params) {
			Throw(at, "a macro of %d parameters is given %d", len(m.params), len(args))
		}
		return args, rest[i+1:]
	}
	Throw(at, "the arguments of a macro do not end")
	return nil, nil
}

func (p *preprocessor) substitute(m *macro, args [][]token) []token {
	var out []token
	for i, t := range m.body {
		n := slices.Index(m.params, t.text)
		if t.kind != kindName || n < 0 {
			out = append(out, t)
			continue
		}
		pasted := i > 0 && m.body[i-1].is("##") || i+1 < len(m.body) && m.body[i+1].is("##")
		if pasted {
			out = append(out, args[n]...)
		} else {
			out = append(out, p.expand(args[n])...)
		}
	}
	return out
}

// paste joins the tokens on both sides of ##.
func paste(in []token) []token {
	var out []token
	for i := 0; i < len(in); i++ {
		if in[i].is("##") && len(out) > 0 && i+1 < len(in) {
			joined := lex(in[i].File, out[len(out)-1].text+in[i+1].text)
			if len(joined) != 1 {
				Throw(in[i].Pos, "## joins what is not one word")
			}
			out[len(out)-1].kind, out[len(out)-1].text = joined[0].kind, joined[0].text
			i++
			continue
		}
		out = append(out, in[i])
	}
	return out
}

// number reads a literal: 10, 0x1f, 32w0xff, 8s5.
func number(t token) *Number {
	n := &Number{Pos: t.Pos}
	text := t.text
	if i := strings.IndexAny(text, "ws"); i > 0 && isDigit(text[i-1]) && !strings.HasPrefix(text, "0x") {
		width, err := strconv.Atoi(text[:i])
		if err != nil || width < 1 || width > 512 { // above 64 only to fill a hash's field list
			Throw(t.Pos, "%s: a number of %s bits is outside of the model (1 to 512)", text, text[:i])
		}
		n.Width, n.Signed, text = width, text[i] == 's', text[i+1:]
	}
	v, err := strconv.ParseUint(strings.ReplaceAll(text, "_", ""), 0, 64)
	if err != nil {
		Throw(t.Pos, "%s is no number of at most 64 bits", t.text)
	}
	if n.Width > 0 && n.Width < 64 && v>>n.Width != 0 {
		Throw(t.Pos, "%s does not fit into its %d bits", t.text, n.Width)
	}
	n.Value = v
	return n
}
