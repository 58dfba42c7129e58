package main

import (
	"fmt"
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
	const output = "All were read.\n"
	if err := os.WriteFile(path, []byte(strings.Replace(read(), handMark, handMark+output, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	once := read()
	if err := j.write(); err != nil {
		t.Fatal(err)
	}
	if text := read(); !strings.Contains(text, handMark+output+handEnd) || len(text) != len(once) {
		t.Errorf("a second table:\n%s", text)
	}
}

// The interval is Wilson's: within 0 and 1 where all or none were seen.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		n, all int
		want   string
	}{{85, 100, "0.767 0.907"}, {0, 10, "0.000 0.278"}, {10, 10, "0.722 1.000"}, {170, 200, "0.794 0.893"}} {
		low, high := interval(c.n, c.all)
		if got := fmt.Sprintf("%.3f %.3f", low, high); got != c.want {
			t.Errorf("%d of %d: %s, want %s", c.n, c.all, got, c.want)
		}
	}
}
