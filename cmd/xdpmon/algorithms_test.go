package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/genalgos/list"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

func TestAlgorithmsAreGenerated(t *testing.T) {
	want, err := list.Generate("../..", "main")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("algorithms_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("algorithms_gen.go is out of date: run go generate ./cmd/xdpmon\n--- the folders say\n%s", want)
	}
}

func TestAlgorithmsAreFoundByFolder(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"bpf/both/both.bpf.c", "userspace/both/both.go", "bpf/include/x.h", "userspace/only/only.go", "bpf/bare/bare.bpf.c", "userspace/bare/README"} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names, err := list.Algorithms(root)
	if err != nil || len(names) != 1 || names[0] != "both" {
		t.Errorf("algorithms %v, %v; want [both]", names, err)
	}
}

// A paper is cited so that anybody can find it: authors, title, venue and year, and where in it.
func TestPapersCanBeFound(t *testing.T) {
	citation := regexp.MustCompile(`^\p{Lu}[\pL, ]+: ".+", .+20\d\d, (section|chapter)s? \d`)
	for _, d := range algo.All() {
		if !strings.HasPrefix(d.Name, "test-") && !citation.MatchString(d.Paper) {
			t.Errorf("%s cites %q", d.Name, d.Paper)
		}
	}
}
