package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tree is a copy of the sources in which mutants are tried one after the other. It stays where it is from run to run, so that
// the compiler's cache knows it.
type tree struct {
	dir     string
	tests   map[string][]string // import path of a package: packages whose tests use it
	objects map[string][]byte   // what was made of bpf/, unchanged
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
		if name, _ := filepath.Rel(dir, path); err == nil && !e.IsDir() && (!here[name] || !exists(name)) {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("clean %s: %w", dir, err)
	}
	t := &tree{dir: dir, tests: map[string][]string{}, objects: map[string][]byte{}}
	for _, path := range sources(dir, "*_bpfel.*") {
		if t.objects[path], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return t, t.users(ctx)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// copyFile leaves alone what is the same.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
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
	slices.SortStableFunc(list, func(a, b string) int { return strings.Compare(b[:1], a[:1]) }) // userspace's own come first
	return list
}

func short(pkg string) string { return strings.TrimPrefix(pkg, module+"/") }

// build compiles a package's tests to a file; what the compiler says otherwise.
func (t *tree) build(ctx context.Context, pkg, to string, args ...string) (said string, err error) {
	args = append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", to}, args...)
	out, err := t.command(ctx, "go", append(args, "./"+pkg)...).CombinedOutput()
	if err != nil {
		return lastLine(out), err
	}
	return "", nil
}

// memory that a mutant may take: one that appends without end must not take the machine's.
const memory = "ulimit -v 8000000; exec \"$@\""

// runTests runs a compiled test where `go test` would.
func (t *tree) runTests(ctx context.Context, binary, pkg string, limit time.Duration, args ...string) ([]byte, error) {
	args = append([]string{"-c", memory, "sh", binary, "-test.failfast", "-test.v", "-test.timeout", limit.String()}, args...)
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	cmd := t.command(ctx, "sh", args...)
	cmd.Dir = filepath.Join(t.dir, pkg)
	return cmd.CombinedOutput()
}

// sources lists files below bpf/ and tests/, where programs are that include the same headers.
func sources(dir string, patterns ...string) (list []string) {
	for _, root := range []string{"bpf/*/", "tests/*/", "tests/*/*/"} {
		for _, p := range patterns {
			found, _ := filepath.Glob(filepath.Join(dir, root+p))
			list = append(list, found...)
		}
	}
	return list
}

// generate makes the programs again that a file is part of, and lists the packages of those that came out different.
func (t *tree) generate(ctx context.Context, file string) (changed []string, said string, err error) {
	args := []string{"generate"}
	for _, folder := range t.including(file) {
		args = append(args, "./"+folder)
	}
	if out, err := t.command(ctx, "go", args...).CombinedOutput(); err != nil {
		return nil, lastLine(out), err
	}
	for path, was := range t.objects {
		now, err := os.ReadFile(path)
		if folder, _ := filepath.Rel(t.dir, filepath.Dir(path)); (err != nil || !bytes.Equal(now, was)) && !slices.Contains(changed, folder) {
			changed = append(changed, folder)
		}
	}
	slices.Sort(changed)
	return changed, "", nil
}

// including lists the folders whose program is made of a file, or of what includes it.
func (t *tree) including(file string) []string {
	files := sources(t.dir, "*.[ch]")
	parts := map[string]bool{filepath.Base(file): true}
	for grown := true; grown; {
		grown = false
		for _, path := range files {
			text, _ := os.ReadFile(path)
			for name := range parts {
				if base := filepath.Base(path); !parts[base] && bytes.Contains(text, []byte("#include \""+name+"\"")) {
					parts[base], grown = true, true
				}
			}
		}
	}
	var list []string
	for _, path := range files {
		if folder, _ := filepath.Rel(t.dir, filepath.Dir(path)); parts[filepath.Base(path)] && strings.HasSuffix(path, ".bpf.c") {
			list = append(list, folder)
		}
	}
	return list
}

func (t *tree) restoreObjects() error {
	for path, was := range t.objects {
		if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, was) {
			continue
		}
		if err := os.WriteFile(path, was, 0o644); err != nil {
			return fmt.Errorf("restore %s: %w", path, err)
		}
	}
	return nil
}
