// Package house tests the layout of the sources: the imports between packages, and their largest size.
package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

const module = "github.com/xdpmon/xdpmon/"

// listed is a package in the output of `go list -json`.
type listed struct {
	ImportPath, Dir  string
	GoFiles, Imports []string
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...")
	cmd.Dir = testutil.Root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		all = append(all, p)
	}
}

func forTests(path string) bool { return strings.HasPrefix(path, "tests/") }

// Shipped packages do not import tests.
func TestNothingShippedImportsTests(t *testing.T) {
	packages := list(t)
	if len(packages) < 50 {
		t.Fatalf("only %d packages", len(packages))
	}
	for _, p := range packages {
		for _, imported := range p.Imports {
			if path, ours := strings.CutPrefix(imported, module); ours && forTests(path) && !forTests(p.ImportPath) {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}

// With text/template the linker keeps every exported method, and the binary is 7 MB larger.
func TestNothingShippedUsesTemplates(t *testing.T) {
	for _, p := range list(t) {
		for _, imported := range p.Imports {
			if (imported == "text/template" || imported == "html/template") && !forTests(p.ImportPath) {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
	}
}

// Imports follow the layers: a lower layer does not import a higher one.
func TestImportsRunOneWay(t *testing.T) {
	layers := []string{"bpf/", "maps", "loader", "userspace/", "cmd/"}
	layer := func(path string) int {
		return slices.IndexFunc(layers, func(f string) bool { return strings.HasPrefix(path+"/", f) })
	}
	for _, p := range list(t) {
		for _, imported := range p.Imports {
			path, ours := strings.CutPrefix(imported, module)
			if from, to := layer(p.ImportPath), layer(path); ours && from >= 0 && to > from {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}

// Files, metrics, store and page serve agents and coordinators alike, and import neither.
func TestOutputsImportNoService(t *testing.T) {
	found := 0
	for _, p := range list(t) {
		if !slices.ContainsFunc([]string{"userspace/outlet", "userspace/prom", "userspace/store", "userspace/feed", "userspace/report"},
			func(dir string) bool { return strings.HasPrefix(p.ImportPath+"/", dir+"/") }) {
			continue
		}
		found++
		for _, imported := range p.Imports {
			if path, ours := strings.CutPrefix(imported, module); ours && (strings.HasPrefix(path, "userspace/agent") || strings.HasPrefix(path, "userspace/coordinator")) {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d packages of outputs: this test looks in the wrong folders", found)
	}
}

// Only the coordinator's program links a message server; the agent's does not.
func TestServerIsLinkedOnce(t *testing.T) {
	for program, want := range map[string]bool{"xdpmon": false, "xdpmon-coordinator": true} {
		cmd := exec.Command("go", "list", "-deps", "./cmd/"+program)
		cmd.Dir = testutil.Root(t)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(out), "github.com/nats-io/nats-server/"); got != want {
			t.Errorf("%s links a message server: %v, want %v", program, got, want)
		}
	}
}

// mostLines is the limit of lines of a package, without tests and generated files.
const mostLines = 3000

func TestRoomsAreSmall(t *testing.T) {
	for _, p := range list(t) {
		lines := 0
		for _, name := range p.GoFiles {
			lines += linesOf(t, filepath.Join(p.Dir, name))
		}
		if lines > mostLines {
			t.Errorf("%s has %d lines, at most %d are allowed", p.ImportPath, lines, mostLines)
		}
	}
}

func linesOf(t *testing.T, path string) int {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(file) {
		return 0
	}
	return fset.File(file.Pos()).LineCount()
}

// Threads change their network namespace in one package only.
func TestOnePlaceEntersNamespaces(t *testing.T) {
	const place = "loader/namespace"
	found := false
	for _, p := range list(t) {
		for _, name := range p.GoFiles {
			enters := mentions(t, filepath.Join(p.Dir, name), "Setns", "CLONE_NEWNET")
			found = found || enters && p.ImportPath == place
			if enters && p.ImportPath != place && !forTests(p.ImportPath) {
				t.Errorf("%s/%s enters a network namespace: %s does", p.ImportPath, name, place)
			}
		}
	}
	if !found {
		t.Errorf("%s enters none: this test looks for the wrong names", place)
	}
}

// mentions reports whether a file uses one of these names of another package.
func mentions(t *testing.T, path string, names ...string) (found bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(names, s.Sel.Name) {
			found = true
		}
		return !found
	})
	return found
}
