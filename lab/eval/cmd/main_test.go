package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval"
)

// Every folder of lab/eval that registers a study is imported, by a file study_NAME.go.
func TestStudies(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || !registers(t, filepath.Join("..", e.Name())) {
			continue
		}
		if !slices.Contains(names(), e.Name()) {
			t.Errorf("study %s is not run by make eval: import it in study_%s.go", e.Name(), e.Name())
		}
	}
}

// registers reports whether a folder has a call of eval.Register.
func registers(t *testing.T, dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\teval.Register(&") {
			return true
		}
	}
	return false
}

// A run keeps the sections that it does not measure, and nothing else: text that somebody wrote around them would be lost.
func TestDocumentsAreTheStudies(t *testing.T) {
	for _, s := range eval.Studies() {
		path := filepath.Join("../../../docs/eval", s.Name+".md")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if s.Rewritten(string(text)) != string(text) {
			t.Errorf("%s: a run that measures nothing would change it: what stands outside of its sections belongs into the study", path)
		}
	}
}

// A section that runs in no time comes out again as it was, and what has been changed since is found.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	args := []string{"-quick", "-only", "beaucoup.coupons", "-dir", dir}
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), append(args, "-check")); err != nil {
		t.Errorf("a second run: %v", err)
	}
	path := filepath.Join(dir, "beaucoup.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "13.7 % |\n", "13.8 % |\n", 1)
	if changed == string(text) {
		t.Fatalf("no error of 32 coupons in\n%s", text)
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), append(args, "-check")); !errors.Is(err, eval.ErrDiffers) {
		t.Errorf("a page that was changed: %v", err)
	}
}

func TestUsage(t *testing.T) {
	err := run(t.Context(), []string{"-only", "no-such", "-dir", t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("an unknown study: %v", err)
	}
	if got := command([]string{"-only", "fridge"}); got != "lab/run eval/cmd -only fridge" {
		t.Errorf("command %q", got)
	}
	if got := command(nil); got != "make eval" {
		t.Errorf("command %q", got)
	}
}
