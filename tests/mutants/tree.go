package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tree is a copy of the sources in which mutants are tried one after the other.
type tree struct {
	dir   string
	tests map[string][]string      // import path of a package: packages whose tests use it
	took  map[string]time.Duration // of each package's tests
}

// copyTree copies what git knows to dir.
func copyTree(ctx context.Context, dir string) (*tree, error) {
	files, err := exec.CommandContext(ctx, "git", "ls-files", "-z").Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(files), "\x00"), "\x00") {
		if err := copyFile(name, filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	t := &tree{dir: dir, tests: map[string][]string{}, took: map[string]time.Duration{}}
	return t, t.users(ctx)
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// command runs in the tree; captures are found where the original finds them.
func (t *tree) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), "XDPMON_TRACES="+traces())
	cmd.WaitDelay = time.Second
	return cmd
}

func traces() string {
	if dir := os.Getenv("XDPMON_TRACES"); dir != "" {
		return dir
	}
	dir, err := filepath.Abs("../shared/traces")
	if err != nil {
		return ""
	}
	return dir
}

// users finds out which packages' tests depend on which packages.
func (t *tree) users(ctx context.Context) error {
	out, err := t.command(ctx, "go", "list", "-test", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./...").Output()
	if err != nil {
		return fmt.Errorf("list packages: %w", err)
	}
	for row := range strings.Lines(string(out)) {
		fields := strings.Fields(row)
		pkg, isTest := strings.CutSuffix(fields[0], ".test")
		if !isTest {
			continue
		}
		for _, dep := range fields[1:] {
			if base, _, _ := strings.Cut(dep, " "); strings.HasPrefix(base, module) && !slices.Contains(t.tests[base], pkg) {
				t.tests[base] = append(t.tests[base], pkg)
			}
		}
	}
	return nil
}

// baseline runs all tests once, and what fails a second time: they have to pass, and how long they take decides their order.
func (t *tree) baseline(ctx context.Context) error {
	failed, err := t.timed(ctx, "./...")
	if err == nil && len(failed) > 0 {
		fmt.Println("once more, unchanged:", strings.Join(failed, " "))
		failed, err = t.timed(ctx, failed...)
	}
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("these do not pass as they are: %s", strings.Join(failed, " "))
	}
	return err
}

// timed runs tests, remembers how long each package took, and returns those that failed.
func (t *tree) timed(ctx context.Context, packages ...string) (failed []string, err error) {
	args := append([]string{"test", "-count=1", "-p", "2", "-timeout", "20m", "-json"}, packages...)
	out, err := t.command(ctx, "go", args...).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("run the tests: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var e struct {
			Action, Package, Test string
			Elapsed               float64
		}
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return failed, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("read test events: %w", err)
		case e.Test != "" || e.Package == "":
			continue
		}
		switch e.Action {
		case "fail":
			failed = append(failed, e.Package)
			fallthrough
		case "pass":
			t.took[e.Package] = time.Duration(e.Elapsed * float64(time.Second))
		}
	}
}

// near lists the tests that use any of the changed packages: a package's own first, then those of its name, then the quick
// ones, as long as they fit the time.
func (t *tree) near(changed []string, room time.Duration) []string {
	all := map[string]bool{}
	for _, c := range changed {
		for _, p := range t.tests[c] {
			all[p] = true
		}
		if _, ok := t.took[c]; ok {
			all[c] = true
		}
	}
	delete(all, module+"/tests/mutants")
	list := slices.Collect(maps.Keys(all))
	slices.SortFunc(list, func(a, b string) int {
		if x, y := rank(a, changed), rank(b, changed); x != y {
			return x - y
		}
		return int(t.took[a] - t.took[b])
	})
	var sum time.Duration
	for i, p := range list {
		if sum += t.took[p]; sum > room && rank(p, changed) == 2 {
			return list[:i]
		}
	}
	return list
}

// rank is 0 for a changed package itself, 1 for tests of the same name, 2 for others.
func rank(p string, changed []string) int {
	least := 2
	for _, c := range changed {
		switch {
		case p == c:
			return 0
		case filepath.Base(p) == filepath.Base(c):
			least = 1
		}
	}
	return least
}
