package p4

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/run"
)

// compilerEnv names a command line that compiles a program and writes the compiler's report of resources; {file}, {out},
// {target} (tofino, tofino2), {arch} (tna, t2na), {number} (1, 2) and {defines} (-DNAME=VALUE ...) are replaced.
const compilerEnv = "XDPMON_P4C"

// compilerLine runs a p4c with the Tofino back end; -g makes it write resources.json.
const compilerLine = "p4c -g --target {target} --arch {arch} {defines} -o {out} {file}"

var errNoCompiler = errors.New("no P4 compiler with a Tofino back end: put p4c on the PATH, or a command line into " +
	compilerEnv + ", such as \"" + compilerLine + "\"")

// compiler finds the command line to compile with.
func compiler() (string, error) {
	if line := os.Getenv(compilerEnv); line != "" {
		return line, nil
	}
	path, err := exec.LookPath("p4c")
	if err != nil {
		return "", errNoCompiler
	}
	help, err := exec.Command(path, "--target-help").CombinedOutput()
	if err != nil || !strings.Contains(string(help), "tofino2-t2na") {
		return "", errNoCompiler
	}
	return compilerLine, nil
}

// fill puts a twin into a compiler's command line.
func fill(line, twin, out string, form Form, target run.Target) []string {
	names := map[run.Target][3]string{run.Tofino1: {"tofino", "tna", "1"}, run.Tofino2: {"tofino2", "t2na", "2"}}[target]
	words := strings.NewReplacer("{file}", filepath.Join(twin, "top.p4"), "{out}", out, "{defines}", form.String(),
		"{target}", names[0], "{arch}", names[1], "{number}", names[2])
	return strings.Fields(words.Replace(line))
}

// TestTwinsCompile compiles every twin in every form for both targets where there is a compiler, and compares stages and
// resources with the table of docs/twins.md. No package registry has a compiler, so this test skips even in CI, with a message:
// what needs none (grammar, types, one access a register, forms of the table) is tested without.
func TestTwinsCompile(t *testing.T) {
	line, err := compiler()
	if err != nil {
		t.Skipf("not compiled: %v", err)
	}
	documented, err := documentedUses(docFile)
	if err != nil {
		t.Fatal(err)
	}
	eachForm(t, func(t *testing.T, twin string, form Form, target run.Target) {
		t.Run(fmt.Sprintf("%s/%s/%d", twin, form, target), func(t *testing.T) {
			out := t.TempDir()
			args := fill(line, twin, out, form, target)
			text, err := exec.Command(args[0], args[1:]...).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, text)
			}
			have, err := readUse(out)
			if err != nil {
				t.Fatalf("%s: %v", strings.Join(args, " "), err)
			}
			t.Logf("%s", have.row(twin, form, target))
			if want, ok := documented[useKey(twin, form, target)]; !ok || have != want {
				t.Errorf("docs/twins.md does not state this (it has: %v):\n%s", ok, have.row(twin, form, target))
			}
		})
	})
}

// TestDocumentedForms: each form that docs/twins.md lists as compiled is a form of a twin, and has no more than its chip. Forms without a row
// were not compiled; the test names them.
func TestDocumentedForms(t *testing.T) {
	documented, err := documentedUses(docFile)
	if err != nil {
		t.Fatal(err)
	}
	eachForm(t, func(t *testing.T, twin string, form Form, target run.Target) {
		key := useKey(twin, form, target)
		use, ok := documented[key]
		if !ok {
			t.Logf("does not compile: %s", key)
			return
		}
		if err := use.fits(target); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		delete(documented, key)
	})
	for key := range documented {
		t.Errorf("docs/twins.md has a row for %s, which is no form of a twin", key)
	}
}
