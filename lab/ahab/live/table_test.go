package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval"
)

const documentPath = "../../../docs/eval/ahab-live.md"

// A row that is measured takes the place of the one of its name: other rows and all text stay, in the document as it is.
func TestOtherTextStays(t *testing.T) {
	old, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "document.md")
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	r := rows()[3]
	for _, use := range []float64{.5, .25} {
		if err := keep(path, r.line([]result{{use: use}})); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, after := strings.Split(string(old), "\n"), strings.Split(string(text), "\n")
	if len(before) != len(after) {
		t.Fatalf("%d lines were %d", len(after), len(before))
	}
	for i, line := range before {
		mine := strings.HasPrefix(line, "| "+r.String()+" |")
		if mine != (after[i] != line) || mine && !strings.Contains(after[i], "| 0.25 |") {
			t.Errorf("line %d is %q, was %q", i+1, after[i], line)
		}
	}
}

func TestMerged(t *testing.T) {
	list := rows()
	table := head + "| one of somebody's own | x |\n"
	for _, r := range []run{list[2], list[0], list[len(list)-1]} {
		table = merged(table, "| "+r.String()+" | first |")
	}
	table = merged(table, "| "+list[0].String()+" | second |")
	want := head + "| " + list[0].String() + " | second |\n| " + list[2].String() + " | first |\n| " + list[len(list)-1].String() +
		" | first |\n| one of somebody's own | x |\n"
	if table != want {
		t.Errorf("got\n%s\nwant\n%s", table, want)
	}
	if got := merged("", "| a |"); got != head+"| a |\n" {
		t.Errorf("got %q", got)
	}
}

// A document without the section is refused before anything is measured.
func TestNoSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "document.md")
	if err := os.WriteFile(path, []byte("# Hand-written\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := eval.ReadSection(path, section); err == nil {
		t.Error("taken")
	}
	if err := keep(path, "| a |"); err == nil {
		t.Error("written")
	}
	if text, _ := os.ReadFile(path); string(text) != "# Hand-written\n" {
		t.Errorf("the document is %q", text)
	}
}
