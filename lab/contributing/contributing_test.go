// Package contributing keeps CONTRIBUTING.md true: it adds the algorithm of that page to a copy of the tree,
// generates, builds and replays packets through it.
package contributing

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// files finds `<!-- file: PATH -->` followed by a fenced block.
var files = regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```[a-z0-9]+\n(.*?)\n```")

func TestExampleAlgorithm(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.NeedTool(t, "clang-19")
	tree := copyTree(t)
	for _, f := range exampleFiles(t) {
		write(t, filepath.Join(tree, f.path), f.text)
	}
	run(t, tree, "go", "generate", "./bpf/syncount", "./userspace/all", "./p4/all")
	xdpmon := filepath.Join(t.TempDir(), "xdpmon")
	run(t, tree, "go", "build", "-o", xdpmon, "./cmd/xdpmon")

	if help := run(t, tree, xdpmon, "algos", "syncount"); !strings.Contains(help, "cells") {
		t.Errorf("the parameter is not in the help:\n%s", help)
	}
	run(t, tree, xdpmon, "pisa", "syncount")
	lines := strings.Split(strings.TrimSpace(run(t, tree, xdpmon, "replay", capture(t), "--algo", "syncount", "--truth", "--output", "json")), "\n")
	var line struct {
		Report, Truth struct{ Attempts, Busiest uint64 }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		t.Fatalf("read the report: %v in %s", err, lines[len(lines)-1])
	}
	if line.Report.Attempts != 30 || line.Report.Busiest != 20 || line.Truth != line.Report {
		t.Errorf("report %+v and truth %+v, want 30 attempts and 20 to the busiest destination", line.Report, line.Truth)
	}
}

// meeting are the tests that meet every algorithm and every twin, as far as they meet this one.
var meeting = [][]string{
	{"./tests/names", "./tests/house", "./p4", "./cmd/xdpmon", "-run", "^Test(Names|Rooms|Nothing|Imports|Twins|Registers|Stages|Papers|Algos|Pisa)"},
	{"./tests/sweep", "-run", "Test.*/.*syncount|TestAnswers|TestOptionalInterfaces"},
	{"./tests/twins", "-run", "TestModel/tofino./syncount"},
	{"./tests/twins", "-run", "Test(TextIsReached|TimeStampsTurn|Captures|PlansAreExecuted)/syncount"},
}

// TestExamplePasses: what make test asks of every algorithm and twin holds for the example, once `make answers` has run.
func TestExamplePasses(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.NeedTool(t, "clang-19")
	t.Setenv("XDPMON_TRACES", testutil.Traces(t)) // the copy has none beside it
	tree := copyTree(t)
	for _, f := range exampleFiles(t) {
		write(t, filepath.Join(tree, f.path), f.text)
	}
	run(t, tree, "go", "generate", "./bpf/syncount", "./userspace/all", "./p4/all")
	run(t, tree, "make", "answers")
	for _, args := range meeting {
		run(t, tree, "go", append([]string{"test", "-count", "1"}, args...)...)
	}
}

type file struct{ path, text string }

func exampleFiles(t *testing.T) []file {
	page, err := os.ReadFile(filepath.Join(testutil.Root(t), "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []file
	for _, m := range files.FindAllStringSubmatch(string(page), -1) {
		found = append(found, file{m[1], m[2] + "\n"})
	}
	if len(found) != 7 {
		t.Fatalf("CONTRIBUTING.md has %d files, want 7", len(found))
	}
	return found
}

// copyTree copies what git knows or would add.
func copyTree(t *testing.T) string {
	root, tree := testutil.Root(t), t.TempDir()
	list := run(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for _, path := range strings.Split(strings.TrimRight(list, "\x00"), "\x00") {
		if to, err := os.Readlink(filepath.Join(root, path)); err == nil {
			if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(tree, path)), 0o755), os.Symlink(to, filepath.Join(tree, path))); err != nil {
				t.Fatal(err)
			}
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, path))
		if os.IsNotExist(err) {
			continue // deleted, not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(tree, path), string(b))
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(tree, path), info.Mode()); err != nil { // go generate runs a script
			t.Fatal(err)
		}
	}
	return tree
}

func write(t *testing.T, path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errors.String())
	}
	return string(out)
}

// capture writes 20 SYNs to one destination and 10 to as many others.
func capture(t *testing.T) string {
	var pack builder.Packer
	path := filepath.Join(t.TempDir(), "syns.pcap")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := builder.NewPcapWriter(out, packet.LinkEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		p := packet.Packet{Time: int64(1e9 + i), Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, TCPFlags: packet.SYN,
			Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.AddrFrom4([4]byte{10, 0, 1, byte(max(19, i))}), SrcPort: uint16(i), DstPort: 80}
		var f packet.Frame
		if err := pack.Frame(&p, &f); err != nil {
			t.Fatal(err)
		}
		if err := w.Write(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
