package operator

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// Bug reports need the commit.
func TestVersionNamesTheCommit(t *testing.T) {
	version := xdpmon(t, "version")
	version.want(t, done, "^$")
	root := testutil.Root(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("no git checkout: there is no commit to name")
	}
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", root, "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		t.Fatalf("ask git for the commit: %v", err)
	}
	if commit := strings.TrimSpace(string(out)); !strings.Contains(version.out, "-"+commit) {
		t.Errorf("commit %s is not in %q", commit, version.out)
	}
}

// The README promises one static file: it needs no loader and no library of the machine it is copied to.
func TestBinaryIsStatic(t *testing.T) {
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %v: build it with CGO_ENABLED=0", p.Type)
		}
	}
}
