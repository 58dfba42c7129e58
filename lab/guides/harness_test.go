package guides

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// workflow is the part of GitHub's workflow files that a runner cannot do without.
type workflow struct {
	Name string         `yaml:"name"`
	On   any            `yaml:"on"`
	Jobs map[string]job `yaml:"jobs"`
	Rest map[string]any `yaml:",inline"`
}

type job struct {
	RunsOn  string         `yaml:"runs-on"`
	Minutes int            `yaml:"timeout-minutes"`
	Steps   []step         `yaml:"steps"`
	Rest    map[string]any `yaml:",inline"`
}

type step struct {
	Uses string            `yaml:"uses"`
	With map[string]string `yaml:"with"`
	Run  string            `yaml:"run"`
}

// TestHarnessFiles: the workflow of docs/guides/harness.md is YAML that a runner accepts and runs the command of the page that TestGuides runs, and the test of the
// page has twenty lines at most.
func TestHarnessFiles(t *testing.T) {
	page := filepath.Join(testutil.Root(t), "docs/guides/harness.md")
	all := written(t, page)
	var w workflow
	if err := yaml.Unmarshal([]byte(all[".github/workflows/network.yml"]), &w); err != nil {
		t.Fatal(err)
	}
	if w.On == nil || len(w.Jobs) != 1 {
		t.Fatalf("a workflow needs a trigger and a job: %+v", w)
	}
	command, ran := regexp.MustCompile(`go test -exec \S+`).FindString(blocks(t, page)[0].commands), false
	for name, j := range w.Jobs {
		if j.RunsOn == "" || len(j.Rest) > 0 {
			t.Errorf("job %s: runs-on %q, unknown keys %v", name, j.RunsOn, j.Rest)
		}
		for _, s := range j.Steps {
			if (s.Uses == "") == (s.Run == "") {
				t.Errorf("a step either uses an action or runs a command: %+v", s)
			}
			ran = ran || command != "" && strings.HasPrefix(s.Run, command)
		}
	}
	if !ran {
		t.Errorf("no step of the workflow runs %q", command)
	}
	if n := linesOfTest(t, all["latency_test.go"]); n == 0 || n > 20 {
		t.Errorf("the test has %d lines, want 20 or fewer", n)
	}
}

// linesOfTest is the number of lines between the braces of the only function of a file.
func linesOfTest(t *testing.T, text string) (lines int) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			lines += set.Position(f.Body.Rbrace).Line - set.Position(f.Body.Lbrace).Line - 1
		}
	}
	return lines
}
