package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A test binary holds all mutants in Go at once, so that it is built once: of every function that has one there is a copy beside
// it, with the change, and the function asks the environment whether it is the copy's turn.
const whichMutant = "XDPMON_MUTANT"

const asksWhich = "package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar mutantOfAll, _ = strconv.Atoi(os.Getenv(%q))\n"

// splice writes the changed functions into the tree, leaves out those that do not compile, and returns these.
func (t *tree) splice(ctx context.Context, list []drawn) (refused map[string]bool, err error) {
	refused = map[string]bool{}
	files := map[string][]int{}
	for n, s := range list {
		if strings.HasSuffix(s.File, ".go") {
			files[s.File] = append(files[s.File], n)
		}
	}
	for {
		for file, members := range files {
			members = slices.DeleteFunc(slices.Clone(members), func(n int) bool { return refused[list[n].key] })
			if err := t.spliceFile(file, list, members); err != nil {
				return nil, fmt.Errorf("put mutants into %s: %w", file, err)
			}
		}
		out, err := t.command(ctx, "go", "build", "-gcflags=-e", "./userspace/...").CombinedOutput()
		if err == nil {
			return refused, nil
		}
		bad, err := t.culprits(out)
		if err != nil || len(bad) == 0 {
			return nil, fmt.Errorf("build with mutants: %s: %w", lastLine(out), err)
		}
		for _, s := range list {
			if slices.Contains(bad, s.number) {
				refused[s.key] = true
			}
		}
	}
}

func (t *tree) spliceFile(file string, list []drawn, members []int) error {
	text, err := os.ReadFile(file) // as it is here
	if err != nil {
		return err
	}
	out, name, err := spliced(text, list, members)
	if err != nil {
		return err
	}
	to := filepath.Join(t.dir, file)
	if err := os.WriteFile(filepath.Join(filepath.Dir(to), "mutant_of_all.go"), fmt.Appendf(nil, asksWhich, name, whichMutant), 0o644); err != nil {
		return err
	}
	return os.WriteFile(to, out, 0o644)
}

var copied = regexp.MustCompile(`^func .*_mutant(\d+)[\[(]`)

// culprits are the mutants that the compiler complains of.
func (t *tree) culprits(output []byte) (bad []int, err error) {
	for _, m := range regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`).FindAllSubmatch(output, -1) {
		text, err := os.ReadFile(filepath.Join(t.dir, string(m[1])))
		if err != nil {
			return nil, err
		}
		lines := bytes.Split(text, []byte("\n"))
		at, _ := strconv.Atoi(string(m[2]))
		for at = min(at, len(lines)) - 1; at >= 0; at-- {
			if who := copied.FindSubmatch(lines[at]); who != nil {
				n, _ := strconv.Atoi(string(who[1]))
				bad = append(bad, n)
				break
			}
		}
	}
	return bad, nil
}

// edit replaces bytes of a file.
type edit struct {
	from, to int
	text     string
}

func apply(text []byte, from, to int, edits ...edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	for _, e := range edits {
		b.Write(text[from:e.from])
		b.WriteString(e.text)
		from = e.to
	}
	b.Write(text[from:to])
	return b.String()
}

// spliced is a file with copies of its functions, one for each mutant.
func spliced(text []byte, list []drawn, members []int) (out []byte, pkg string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, 0)
	if err != nil {
		return nil, "", err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	var edits []edit
	var copies strings.Builder
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		from, to := at(f.Pos()), at(f.End())
		names, call := signature(f, text, at)
		asks := ""
		for _, n := range members {
			s := list[n]
			if s.From < from || to < s.To {
				continue
			}
			suffix := fmt.Sprintf("_mutant%d", s.number)
			rename := edit{at(f.Name.End()), at(f.Name.End()), suffix}
			fmt.Fprintf(&copies, "\n%s\n", apply(text, from, to, append(slices.Clone(names), rename, edit{s.From, s.To, s.New})...))
			turn := fmt.Sprintf(call, suffix)
			if f.Type.Results != nil {
				turn = "return " + turn
			} else {
				turn += "; return"
			}
			asks += fmt.Sprintf(" if mutantOfAll == %d { %s };", s.number, turn)
		}
		if asks != "" {
			body := at(f.Body.Lbrace) + 1
			edits = append(append(edits, names...), edit{body, body, asks})
		}
	}
	return []byte(apply(text, 0, len(text), edits...) + copies.String()), file.Name.Name, nil
}

// signature gives every parameter a name, and makes the call of a function's copy with the same arguments; %s is the suffix of its
// name.
func signature(f *ast.FuncDecl, text []byte, at func(token.Pos) int) (names []edit, call string) {
	number := 0
	fill := func(list *ast.FieldList) (args []string) {
		for _, field := range list.List {
			idents := field.Names
			if len(idents) == 0 {
				number++
				name := fmt.Sprintf("argument%d", number)
				names = append(names, edit{at(field.Type.Pos()), at(field.Type.Pos()), name + " "})
				args = append(args, name+dots(field))
			}
			for _, id := range idents {
				name := id.Name
				if name == "_" {
					number++
					name = fmt.Sprintf("argument%d", number)
					names = append(names, edit{at(id.Pos()), at(id.End()), name})
				}
				args = append(args, name+dots(field))
			}
		}
		return args
	}
	receiver := ""
	if f.Recv != nil {
		receiver = fill(f.Recv)[0] + "."
	}
	args := fill(f.Type.Params)
	types := ""
	if f.Type.TypeParams != nil {
		var list []string
		for _, field := range f.Type.TypeParams.List {
			for _, id := range field.Names {
				list = append(list, id.Name)
			}
		}
		types = "[" + strings.Join(list, ", ") + "]"
	}
	return names, receiver + f.Name.Name + "%s" + types + "(" + strings.Join(args, ", ") + ")"
}

func dots(field *ast.Field) string {
	if _, ok := field.Type.(*ast.Ellipsis); ok {
		return "..."
	}
	return ""
}
