package p4

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compilerEnv names a command line that compiles a program; {file}, {out}, {target} (tofino, tofino2), {arch}
// (tna, t2na) and {number} (1, 2) are replaced.
const compilerEnv = "XDPMON_P4C"

// compilerLine is what a p4c with the Tofino back end wants.
const compilerLine = "p4c --target {target} --arch {arch} -o {out} {file}"

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

// TestTwinsCompile compiles every twin for both targets where there is a compiler. No package registry has one, so
// this test skips even in CI, and says so.
func TestTwinsCompile(t *testing.T) {
	line, err := compiler()
	if err != nil {
		t.Skipf("not compiled: %v", err)
	}
	for _, twin := range twins(t) {
		for _, target := range []struct{ target, arch, number string }{{"tofino", "tna", "1"}, {"tofino2", "t2na", "2"}} {
			t.Run(twin+"/"+target.target, func(t *testing.T) {
				fill := strings.NewReplacer("{file}", filepath.Join(twin, "top.p4"), "{out}", t.TempDir(),
					"{target}", target.target, "{arch}", target.arch, "{number}", target.number)
				args := strings.Fields(fill.Replace(line))
				out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
				}
			})
		}
	}
}
