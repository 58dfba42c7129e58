package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// tree is a copy of the sources in which mutants are tried one after the other. It stays where it is from run to run, so that
// the compiler's cache knows it.
type tree struct {
	dir   string
	tests map[string][]string // a package: packages whose tests use it
	units []unit

	c    sync.Mutex // one mutant in C at a time is in the tree
	have map[string]bool
}

// copyTree brings dir up to what stands here.
func copyTree(ctx context.Context, dir string) (*tree, error) {
	files, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	here := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimRight(string(files), "\x00"), "\x00") {
		if here[name] = true; exists(name) {
			if err := copyFile(name, filepath.Join(dir, name)); err != nil {
				return nil, err
			}
		}
	}
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if name, _ := filepath.Rel(dir, path); err == nil && !e.IsDir() && (!here[name] || !exists(name)) && e.Name() != "mutant_objects.go" {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("clean %s: %w", dir, err)
	}
	t := &tree{dir: dir, tests: map[string][]string{}, have: map[string]bool{}}
	if err := t.readUnits(); err != nil {
		return nil, err
	}
	return t, t.users(ctx)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// copyFile leaves alone what is the same.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return copyLink(from, to)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if was, err := os.ReadFile(to); err == nil && bytes.Equal(was, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// copyLink keeps a symbolic link one: its target, which may be a folder, is in the tree by itself.
func copyLink(from, to string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	if was, err := os.Readlink(to); err == nil && was == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, to)
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
		pkg = short(pkg)
		for _, dep := range append(fields[1:], module+"/"+pkg) {
			if strings.HasPrefix(dep, module) && !slices.Contains(t.tests[short(dep)], pkg) {
				t.tests[short(dep)] = append(t.tests[short(dep)], pkg)
			}
		}
	}
	return nil
}

// judges are the packages with tests that may decide.
func (t *tree) judges(skip *regexp.Regexp) []string {
	all := map[string]bool{}
	for _, list := range t.tests {
		for _, pkg := range list {
			all[pkg] = all[pkg] || !skip.MatchString(pkg)
		}
	}
	maps.DeleteFunc(all, func(_ string, ok bool) bool { return !ok })
	list := slices.Sorted(maps.Keys(all))
	slices.SortStableFunc(list, func(a, b string) int { return strings.Compare(b[:1], a[:1]) }) // userspace's own are first
	return list
}

func short(pkg string) string { return strings.TrimPrefix(pkg, module+"/") }

// build compiles a package's tests to a file; what the compiler prints otherwise.
func (t *tree) build(ctx context.Context, pkg, to string, args ...string) (output string, err error) {
	args = append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", to}, args...)
	out, err := t.command(ctx, "go", append(args, "./"+pkg)...).CombinedOutput()
	if err != nil {
		return lastLine(out), err
	}
	return "", nil
}

// memory that a mutant may take: one that appends without end must not take the machine's.
const memory = "ulimit -v 8000000; exec \"$@\""

// runTests runs a compiled test where `go test` would. late is that it was ended because of the limit; a run that fails while this process
// was stopped is repeated: tests wait by a clock that goes on meanwhile.
func (t *tree) runTests(ctx context.Context, env, binary, pkg string, limit time.Duration, args ...string) (out []byte, late bool, err error) {
	args = append([]string{"-c", memory, "sh", binary, "-test.failfast", "-test.v", "-test.timeout", "0"}, args...)
	for range repeats {
		cmd := t.command(ctx, "sh", args...)
		cmd.Dir = filepath.Join(t.dir, pkg)
		cmd.Env = append(cmd.Env, env)
		var stopped bool
		ticks := time.NewTicker(tick)
		out, late, stopped, err = watched(cmd, limit, ticks.C)
		ticks.Stop()
		if err == nil || !stopped {
			break
		}
	}
	return out, late, err
}

// repeats is how often a test is run at most that was stopped in between.
const repeats = 3

// watched runs a command for so long at most as this process runs meanwhile, by its ticks: where both are frozen, by the freezer of a control
// group or with their machine, that time does not count, and stopped is true. At the limit a Go program prints what its goroutines wait for.
func watched(cmd *exec.Cmd, limit time.Duration, ticks <-chan time.Time) (out []byte, late, stopped bool, err error) {
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, false, false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for ran := time.Duration(0); ; {
		select {
		case err := <-ended:
			return b.Bytes(), late, time.Since(started) > ran+ran/4+4*tick, err
		case <-ticks:
			switch ran += tick; {
			case ran > limit+10*tick:
				_ = cmd.Process.Kill() // it ends, or has ended
			case ran > limit && !late:
				late = true
				_ = cmd.Process.Signal(syscall.SIGQUIT)
			}
		}
	}
}

const tick = time.Second
