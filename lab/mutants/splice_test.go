package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/lab/mutants/site"
)

const before = `package p

type T struct{}

func (T) sum(_ int, list ...int) (n int, err error) {
	for _, x := range list {
		n += x
	}
	return n, nil
}

func each[E any](list []E, f func(E)) {
	for i := 0; i < len(list); i++ {
		f(list[i])
	}
}
`

// A file with mutants is Go again, and each has its own copy of the function and is called with the same arguments.
func TestSpliced(t *testing.T) {
	list, err := site.Go("p.go", []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	var all []drawn
	var members []int
	for n, s := range list {
		all, members = append(all, drawn{Site: s, number: n + 1}), append(members, n)
	}
	out, pkg, err := spliced([]byte(before), all, members)
	if err != nil || pkg != "p" {
		t.Fatal(pkg, err)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "", out, 0); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{
		"func (argument1 T) sum(argument2 int, list ...int) (n int, err error) { if mutantOfAll == 1 { return argument1.sum_mutant1(argument2, list...) };",
		"{ each_mutant3[E](list, f); return };", "func (argument1 T) sum_mutant1(argument2 int", "\t\tn -= x\n", "; i <= len(list); i++",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "func each_mutant"); n == 0 || n+strings.Count(string(out), "sum_mutant")/2 != len(list) {
		t.Errorf("%d sites:\n%s", len(list), out)
	}
}
