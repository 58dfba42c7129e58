package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The committed files match the folders.
func TestListsAreGenerated(t *testing.T) {
	for path, l := range map[string]list{
		"userspace/all/algorithms_gen.go": {of: "userspace", with: []string{"bpf/NAME/*.bpf.c", "userspace/NAME/*.go"}},
		"p4/all/twins_gen.go":             {of: "p4", with: []string{"p4/NAME/twin.go"}},
	} {
		l.root = "../../.."
		want, err := l.generate()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(l.root, path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run go generate in its folder\n--- from the folders\n%s", path, want)
		}
	}
}

// What is committed names the constants of the objects.
func TestConstantsAreGenerated(t *testing.T) {
	const path = "../../../bpf/constant/constant_gen.go"
	want, err := constants{"../../..", "bpf"}.generate()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is out of date: run go generate ./userspace/all (%v)", path, err)
	}
}

// A constant is named once, whichever objects have it; sizes of arrays, and what only keeps a type, are none.
func TestConstants(t *testing.T) {
	root := t.TempDir()
	write := func(name, maps, variables string) {
		path := filepath.Join(root, "bpf", name, name+"_bpfel.go")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "type AMapSpecs struct {\n" + maps + "\n}\n\ntype AVariableSpecs struct {\n" + variables + "\n}\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "\tCells *ebpf.MapSpec `ebpf:\"cells\"`", "\tCellsEntries *ebpf.VariableSpec `ebpf:\"cells_entries\"`\n\tKeyWords *ebpf.VariableSpec `ebpf:\"key_words\"`\n\tUnusedKind *ebpf.VariableSpec `ebpf:\"unused_kind\"`")
	write("b", "", "\tKeyWords *ebpf.VariableSpec `ebpf:\"key_words\"`\n\tWaysEntries *ebpf.VariableSpec `ebpf:\"ways_entries\"`")
	text, err := constants{root, "bpf"}.generate()
	want := "\tKeyWords    = Name{\"key_words\"}\n\tWaysEntries = Name{\"ways_entries\"}\n)\n"
	if err != nil || !bytes.HasSuffix(text, []byte("var (\n"+want)) {
		t.Errorf("%v\n%s", err, text)
	}
	write("c", "", "\tKeyWords *ebpf.VariableSpec `ebpf:\"keyWords\"`")
	if _, err := (constants{root, "bpf"}).generate(); err == nil {
		t.Error("two constants have one name")
	}
	if _, err := (constants{t.TempDir(), "bpf"}).generate(); err == nil {
		t.Error("the constants of nothing are named")
	}
}

func TestFoundByFolder(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"bpf/both/both.bpf.c", "userspace/both/both.go", "bpf/include/x.h", "userspace/only/only.go", "bpf/bare/bare.bpf.c",
		"userspace/bare/README", "userspace/only.go"} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		with []string
		want []string
	}{
		{[]string{"bpf/NAME/*.bpf.c", "userspace/NAME/*.go"}, []string{"both"}},
		{[]string{"userspace/NAME/*.go"}, []string{"both", "only"}},
	} {
		if names, err := (list{root, "userspace", c.with}).names(); err != nil || !slices.Equal(names, c.want) {
			t.Errorf("%q finds %v, %v; want %v", c.with, names, err, c.want)
		}
	}
	if names, err := (list{root: root, of: "userspace"}).names(); err == nil {
		t.Errorf("nothing is asked of a folder, and %v are found", names)
	}
}

// The command writes the list and ends without an error.
func TestMainWrites(t *testing.T) {
	args, flags := os.Args, flag.CommandLine
	defer func() { os.Args, flag.CommandLine = args, flags }()
	out := filepath.Join(t.TempDir(), "list.go")
	os.Args = []string{"gen", "-root", "../../..", "-of", "p4", "-with", "p4/NAME/twin.go", "-out", out}
	flag.CommandLine = flag.NewFlagSet("gen", flag.PanicOnError)
	main() // whose error would end the test's process
	got, err := os.ReadFile(out)
	want, _ := os.ReadFile("../../../p4/all/twins_gen.go")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, wrote\n%s", err, got)
	}
}
