package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What people wrote stays when a run writes its table.
func TestTableKeepsWhatWasWrittenByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mutants.md")
	j := &jury{options: options{out: path}}
	if err := j.write(); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const said = "All were read.\n"
	if err := os.WriteFile(path, []byte(strings.Replace(read(), handMark, handMark+said, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	once := read()
	if err := j.write(); err != nil {
		t.Fatal(err)
	}
	if text := read(); !strings.Contains(text, handMark+said+handEnd) || len(text) != len(once) {
		t.Errorf("a second table:\n%s", text)
	}
}
