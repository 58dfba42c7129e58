// Package house holds the tests of how the sources are laid out: what imports what, and how large a room may be.
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

// listed is what `go list -json` says of a package.
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

// What ships stands without the tests.
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

// One arrow: what is below knows nothing of what is above.
func TestImportsRunOneWay(t *testing.T) {
	floors := []string{"bpf/", "maps", "loader", "userspace/", "cmd/"}
	floor := func(path string) int {
		return slices.IndexFunc(floors, func(f string) bool { return strings.HasPrefix(path+"/", f) })
	}
	for _, p := range list(t) {
		for _, imported := range p.Imports {
			path, ours := strings.CutPrefix(imported, module)
			if from, to := floor(p.ImportPath), floor(path); ours && from >= 0 && to > from {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}

// Files, metrics, store and page serve agents and coordinators alike, and know neither.
func TestOutputsKnowNoService(t *testing.T) {
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

// An agent carries no message server, and loads none of it at rest: the coordinator's program alone links one.
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

// mostLines is the size of a room, without its tests and what was generated.
const mostLines = 3000

func TestRoomsAreSmall(t *testing.T) {
	for _, p := range list(t) {
		lines := 0
		for _, name := range p.GoFiles {
			lines += linesOf(t, filepath.Join(p.Dir, name))
		}
		if lines > mostLines {
			t.Errorf("%s has %d lines, at most %d fit a room", p.ImportPath, lines, mostLines)
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
