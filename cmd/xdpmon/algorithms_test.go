package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/genalgos/list"
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
