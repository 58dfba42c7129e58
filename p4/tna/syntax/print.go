package syntax

import (
	"fmt"
	"strings"
)

// Print writes an expression in canonical form: equal expressions print alike.
func Print(e Expr) string {
	switch e := e.(type) {
	case *Name:
		return e.ID
	case *Number:
		return fmt.Sprint(e.Value)
	case *Bool:
		return fmt.Sprint(e.Value)
	case *Any:
		return "_"
	case *Field:
		return Print(e.X) + "." + e.Name
	case *Index:
		return Print(e.X) + "[" + Print(e.I) + "]"
	case *Slice:
		return Print(e.X) + "[" + Print(e.Hi) + ":" + Print(e.Lo) + "]"
	case *Unary:
		return e.Op + Print(e.X)
	case *Binary:
		return "(" + Print(e.X) + " " + e.Op + " " + Print(e.Y) + ")"
	case *Choice:
		return "(" + Print(e.C) + " ? " + Print(e.X) + " : " + Print(e.Y) + ")"
	case *Cast:
		return "(" + e.Type.Name + ")" + Print(e.X)
	case *Call:
		return Print(e.Fn) + "(" + printAll(e.Args) + ")"
	case *List:
		return "{" + printAll(e.Elems) + "}"
	}
	return "?"
}

func printAll(all []Expr) string {
	texts := make([]string, len(all))
	for i, x := range all {
		texts[i] = Print(x)
	}
	return strings.Join(texts, ", ")
}
