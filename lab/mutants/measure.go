package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// suite is what is known of a package's tests: how long each takes, and the functions that they reach.
type suite struct {
	Of    string // hash of the package's files
	Took  map[string]time.Duration
	Reach map[string]bool // "userspace/lean/body.go: rows"
	Fails string          // why it cannot judge
}

// baseline is the suites by package. It is stored in a file and measured again where tests changed.
type baseline struct {
	path   string
	skip   *regexp.Regexp // tests that are left out
	Suites map[string]suite
}

func readBaseline(path string, skip *regexp.Regexp) (*baseline, error) {
	b := &baseline{path: path, skip: skip, Suites: map[string]suite{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	return b, json.Unmarshal(text, b)
}

// measure runs once, unchanged, the tests that are new since the last time.
func (b *baseline) measure(ctx context.Context, t *tree, packages []string) error {
	started := time.Now()
	for i, pkg := range packages {
		of, err := hashOf(filepath.Join(t.dir, pkg), b.skip)
		if err != nil {
			return err
		}
		if b.Suites[pkg].Of == of {
			continue
		}
		s := b.run(ctx, t, pkg)
		if s.Fails != "" { // the machine may have been busy
			s = b.run(ctx, t, pkg)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.Of = of
		b.Suites[pkg] = s
		fmt.Printf("%6s unchanged %d of %d  %s: %d tests reach %d functions %s\n", time.Since(started).Round(time.Second), i+1, len(packages),
			pkg, len(s.Took), len(s.Reach), s.Fails)
		text, err := json.Marshal(b)
		if err != nil {
			return err
		}
		if err := os.WriteFile(b.path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// hashOf a package's tests, and of which of them are left out.
func hashOf(dir string, skip *regexp.Regexp) (string, error) {
	h := sha256.New()
	h.Write([]byte(skip.String()))
	list, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return "", err
	}
	for _, path := range list {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\S+) \((\S+)s\)`)

func (b *baseline) run(ctx context.Context, t *tree, pkg string) suite {
	s := suite{Took: map[string]time.Duration{}, Reach: map[string]bool{}}
	binary, profile := filepath.Join(t.dir, "..", "cover.test"), filepath.Join(t.dir, "..", "cover.out")
	if output, err := t.build(ctx, pkg, binary, "-cover", "-covermode=set", "-coverpkg=./userspace/..."); err != nil {
		s.Fails = output
		return s
	}
	out, late, err := t.runTests(ctx, "", binary, pkg, patience, "-test.coverprofile", profile, "-test.skip", b.skip.String())
	for _, m := range passed.FindAllSubmatch(out, -1) {
		seconds, _ := strconv.ParseFloat(string(m[2]), 64)
		s.Took[string(m[1])] = time.Duration(seconds * float64(time.Second))
	}
	if late {
		s.Reach = nil
		return b.rest(ctx, t, pkg, binary, s)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		s.Fails = failing(out)
		return s
	}
	if err := s.reach(t.dir, profile); err != nil {
		s.Fails = err.Error()
	}
	return s
}

// patience with a package's tests, which coverage makes slower. What is not through by then counts as slow, and as reaching
// whatever has the package's name.
const patience = 6 * time.Minute

func (b *baseline) rest(ctx context.Context, t *tree, pkg, binary string, s suite) suite {
	out, _, err := t.runTests(ctx, "", binary, pkg, patience, "-test.list", ".")
	if err != nil {
		s.Fails = lastLine(out)
		return s
	}
	for name := range strings.Lines(string(out)) {
		if name = strings.TrimSpace(name); s.Took[name] == 0 && strings.HasPrefix(name, "Test") && !b.skip.MatchString(name) && name != "TestMain" {
			s.Took[name] = patience
		}
	}
	return s
}

// reach reads a coverage profile and names functions by it.
func (s suite) reach(dir, profile string) error {
	text, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	functions := map[string][]function{}
	for row := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(row), ":")
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(row, " 0\n") {
			continue
		}
		file := short(name)
		if functions[file] == nil {
			source, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return err
			}
			functions[file] = functionsOf(source)
		}
		first, _, _ := strings.Cut(rest, ".")
		at, _ := strconv.Atoi(first)
		s.Reach[file+": "+around(functions[file], at)] = true
	}
	return nil
}

type function struct {
	name        string
	first, last int
}

func functionsOf(source []byte) (list []function) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, 0)
	if err != nil {
		return nil
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			list = append(list, function{f.Name.Name, set.Position(f.Pos()).Line, set.Position(f.End()).Line})
		}
	}
	return list
}

func around(list []function, line int) string {
	for _, f := range list {
		if f.first <= line && line <= f.last {
			return f.name
		}
	}
	return ""
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failing names the test that noticed.
func failing(out []byte) string {
	if m := failed.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	if m := regexp.MustCompile(`(?m)^=== (?:RUN|CONT) +([^\s/]+)`).FindAllSubmatch(out, -1); m != nil {
		return string(m[len(m)-1][1]) // it ended the process, or never ended
	}
	return ""
}

func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(lines[len(lines)-1])
}
