package site

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// Go finds the sites of a Go file: inside functions, and not in what makes texts.
func Go(file string, text []byte) ([]Site, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	w := &walk{file: file, text: text, set: set}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && f.Name.Name != "init" {
			ast.Inspect(f.Body, w.node)
		}
	}
	return w.list, nil
}

type walk struct {
	file string
	text []byte
	set  *token.FileSet
	list []Site
}

func (w *walk) add(from, to token.Pos, operator, change string) {
	a, b := w.set.Position(from).Offset, w.set.Position(to).Offset
	w.list = append(w.list, Site{File: w.file, Line: w.set.Position(from).Line, Operator: operator, From: a, To: b, Old: string(w.text[a:b]), New: change})
}

// node takes the sites of one node; false where nothing below it counts.
func (w *walk) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		w.call(n)
		return !words(n)
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.BasicLit:
		w.literal(n)
	case *ast.AssignStmt:
		w.assign(n)
	case *ast.IncDecStmt:
		w.operator(n.TokPos, n.Tok)
	case *ast.IfStmt:
		w.add(n.Cond.Pos(), n.Cond.End(), "condition", "!("+string(w.text[w.at(n.Cond.Pos()):w.at(n.Cond.End())])+")")
	case *ast.ExprStmt:
		w.add(n.Pos(), n.End(), "statement", "")
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Help" || key.Name == "Title" || key.Name == "Limit") {
			return false
		}
	}
	return true
}

func (w *walk) at(p token.Pos) int { return w.set.Position(p).Offset }

// words are calls whose arguments end in a sentence.
func words(n *ast.CallExpr) bool {
	f, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch f.Sel.Name {
	case "Errorf", "Error", "New", "Notice", "Fprintf", "Printf":
		return true
	}
	return false
}

// call exchanges the smaller and the larger.
func (w *walk) call(n *ast.CallExpr) {
	f, ok := n.Fun.(*ast.Ident)
	if !ok || len(n.Args) < 2 {
		return
	}
	switch f.Name {
	case "min":
		w.add(f.Pos(), f.End(), "extreme", "max")
	case "max":
		w.add(f.Pos(), f.End(), "extreme", "min")
	}
}

func (w *walk) binary(n *ast.BinaryExpr) {
	if n.Op == token.ADD && (text(n.X) || text(n.Y)) {
		return // strings
	}
	w.operator(n.OpPos, n.Op)
}

// text reports an operand that is, or ends in, a string literal.
func text(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return text(e.X) || text(e.Y)
	}
	return false
}

func (w *walk) operator(at token.Pos, op token.Token) {
	if s, ok := swaps[op.String()]; ok {
		w.add(at, at+token.Pos(len(op.String())), s.operator, s.to)
	}
}

func (w *walk) literal(n *ast.BasicLit) {
	if n.Kind == token.INT {
		if v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64); err == nil {
			w.add(n.Pos(), n.End(), "constant", strconv.FormatInt(v+1, 10))
		}
	}
	if n.Kind == token.FLOAT {
		w.add(n.Pos(), n.End(), "constant", "1.05*"+n.Value)
	}
}

// assign drops an assignment to something that is there already.
func (w *walk) assign(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE {
		return
	}
	if n.Tok != token.ASSIGN {
		w.operator(n.TokPos, n.Tok)
		return
	}
	if name, ok := n.Lhs[0].(*ast.Ident); len(n.Lhs) == 1 && (!ok || name.Name != "_") {
		w.add(n.Pos(), n.End(), "statement", "_ = "+string(w.text[w.at(n.Rhs[0].Pos()):w.at(n.Rhs[0].End())]))
	}
}
