package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/tests/mutants/site"
)

// verdict on a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	same     verdict = "same code" // the compiler made the same of it
	refused  verdict = "refused"   // it does not compile: another is drawn
)

// trial is a mutant and what became of it.
type trial struct {
	site.Site
	key     string
	verdict verdict
	by      string // the test that killed it
	reason  string // why it is equivalent
	took    time.Duration
}

// try makes a mutant, runs the tests that are near it, and takes it back.
func (t *tree) try(ctx context.Context, s site.Site, room time.Duration) (trial, error) {
	started := time.Now()
	path := filepath.Join(t.dir, s.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return trial{}, err
	}
	tr := trial{Site: s, key: s.Key(text)}
	if err := os.WriteFile(path, s.Apply(text), 0o644); err != nil {
		return tr, err
	}
	tr.verdict, tr.by, err = t.judge(ctx, s, room)
	tr.took = time.Since(started)
	if e := os.WriteFile(path, text, 0o644); e != nil {
		return tr, e
	}
	if strings.HasPrefix(s.File, "bpf/") {
		if e := t.restoreObjects(); e != nil {
			return tr, e
		}
	}
	return tr, err
}

func (t *tree) judge(ctx context.Context, s site.Site, room time.Duration) (verdict, string, error) {
	changed := []string{module + "/" + filepath.Dir(s.File)}
	if strings.HasPrefix(s.File, "bpf/") {
		if out, err := t.command(ctx, "go", "generate", "./bpf/...").CombinedOutput(); err != nil {
			return refused, lastLine(out), ctx.Err()
		}
		if changed = t.changedObjects(); len(changed) == 0 {
			return same, "", nil
		}
	}
	if out, err := t.command(ctx, "go", "build", "./...").CombinedOutput(); err != nil {
		return refused, lastLine(out), ctx.Err()
	}
	for _, p := range t.near(changed, room) {
		limit := 4*t.took[p] + time.Minute
		out, err := t.command(ctx, "go", "test", "-failfast", "-count=1", "-timeout", limit.String(), p).CombinedOutput()
		if ctx.Err() != nil {
			return survived, "", ctx.Err()
		}
		if err != nil {
			return killed, strings.TrimPrefix(p, module+"/") + " " + failing(out), nil
		}
	}
	return survived, "", nil
}

// objects of the original, by package folder.
func objectsOf(dir string) []string {
	list, _ := filepath.Glob(filepath.Join(dir, "bpf/*/*_bpfel.o"))
	return list
}

// changedObjects lists the packages whose programs differ from the original's.
func (t *tree) changedObjects() []string {
	var list []string
	for _, path := range objectsOf(t.dir) {
		name, _ := filepath.Rel(t.dir, path)
		now, err := os.ReadFile(path)
		was, errWas := os.ReadFile(name)
		if err != nil || errWas != nil || !bytes.Equal(now, was) {
			list = append(list, module+"/"+filepath.Dir(name))
		}
	}
	return list
}

func (t *tree) restoreObjects() error {
	for _, path := range objectsOf(t.dir) {
		name, _ := filepath.Rel(t.dir, path)
		for _, file := range []string{name, strings.TrimSuffix(name, ".o") + ".go"} {
			if err := copyFile(file, filepath.Join(t.dir, file)); err != nil {
				return fmt.Errorf("restore %s: %w", file, err)
			}
		}
	}
	return nil
}

var failed = regexp.MustCompile(`--- FAIL: (\S+)`)

// failing names the test that noticed.
func failing(out []byte) string {
	if m := failed.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	switch {
	case bytes.Contains(out, []byte("test timed out")):
		return "(time ran out)"
	case bytes.Contains(out, []byte("[build failed]")):
		return "(its tests do not compile)"
	}
	return "(" + lastLine(out) + ")"
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
