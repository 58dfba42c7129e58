package main

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A test binary loads its programs from a folder that the environment names, so that a mutant in C needs no new binary.
const whichObjects = "XDPMON_MUTANT_OBJECTS"

const readsObjects = `package %s

import (
	"os"
	"path/filepath"
)

func init() {
	if b, err := os.ReadFile(filepath.Join(os.Getenv(%q), %q)); err == nil {
		%s = b
	}
}
`

// unit is a program's source and how bpf2go compiles it.
type unit struct {
	folder, source, object string
	flags                  []string
}

var (
	embeds    = regexp.MustCompile(`(?m)^//go:embed (\S+_bpfel\.o)(?:\.zst)?\nvar (\S+) `)
	generates = regexp.MustCompile(`(?m)^//go:generate (\S+/\.ci/bpf2go) .* (\S+\.bpf\.c)$`)
)

// readUnits lists the programs below bpf/ and tests/, and lets their packages read objects.
func (t *tree) readUnits() error {
	for _, path := range sources(t.dir, "*_bpfel.go") {
		u, hook, err := unitOf(path)
		if err != nil {
			return err
		}
		t.units = append(t.units, u)
		if err := os.WriteFile(filepath.Join(u.folder, "mutant_objects.go"), hook, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// unitOf what bpf2go made, and a file that lets its package read the object from elsewhere.
func unitOf(path string) (u unit, hook []byte, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return u, nil, err
	}
	embed := embeds.FindSubmatch(text)
	name := regexp.MustCompile(`(?m)^package (\S+)`).FindSubmatch(text)
	u.folder = filepath.Dir(path)
	others, _ := filepath.Glob(filepath.Join(u.folder, "*.go"))
	for _, other := range others {
		text, _ := os.ReadFile(other)
		m := generates.FindSubmatch(text)
		if m == nil {
			continue
		}
		ask := exec.Command(string(m[1]), "--flags")
		ask.Dir = u.folder
		flags, err := ask.Output()
		if err != nil {
			return u, nil, fmt.Errorf("%s: %w", other, err)
		}
		u.source, u.flags = string(m[2]), strings.Fields(string(flags))
	}
	if embed == nil || name == nil || u.source == "" {
		return u, nil, fmt.Errorf("%s: made by nothing that is known", path)
	}
	u.object = string(embed[1])
	return u, fmt.Appendf(nil, readsObjects, name[1], whichObjects, u.object, embed[2]), nil
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

// compile makes those of a mutant's programs that a package's tests load, in a folder, and returns whether any of them has other
// instructions or data than without it. done are the objects that are there already.
func (t *tree) compile(ctx context.Context, s drawn, pkg, to string, done map[string]bool) (changed bool, output string, err error) {
	t.c.Lock()
	defer t.c.Unlock()
	path := filepath.Join(t.dir, s.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return false, "", err
	}
	for _, u := range t.including(s.File) {
		folder, _ := filepath.Rel(t.dir, u.folder)
		if !slices.Contains(t.tests[folder], pkg) {
			continue
		}
		if differs, ok := done[u.object]; ok {
			changed = changed || differs
			continue
		}
		if err := t.plainObject(ctx, u); err != nil {
			return false, "", err
		}
		object := filepath.Join(to, u.object)
		if err := os.WriteFile(path, s.Apply(text), 0o644); err != nil {
			return false, "", err
		}
		out, wrong := t.clang(ctx, u, object)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return false, "", err
		}
		if wrong != nil {
			return false, "does not compile: " + lastLine(out), ctx.Err()
		}
		done[u.object] = differ(object, filepath.Join(t.dir, "..", "objects", u.object))
		changed = changed || done[u.object]
	}
	return changed, "", nil
}

func (t *tree) plainObject(ctx context.Context, u unit) error {
	path := filepath.Join(t.dir, "..", "objects", u.object)
	if t.have[u.object] {
		return nil
	}
	if out, err := t.clang(ctx, u, path); err != nil {
		return fmt.Errorf("compile %s unchanged: %s: %w", u.source, lastLine(out), err)
	}
	t.have[u.object] = true
	return nil
}

// clang compiles as bpf2go does.
func (t *tree) clang(ctx context.Context, u unit, object string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(object), 0o755); err != nil {
		return nil, err
	}
	args := append([]string{"-O2", "-target", "bpfel", "-c", u.source, "-o", object, "-fno-ident", "-fdebug-compilation-dir", ".", "-g"}, u.flags...)
	cmd := t.command(ctx, "clang-19", args...)
	cmd.Dir = u.folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return out, err
	}
	return t.command(ctx, "llvm-strip-19", "-g", object).CombinedOutput()
}

// differ compares what runs and what it reads, not where a debugger finds it.
func differ(a, b string) bool {
	x, errX := running(a)
	y, errY := running(b)
	return errX != nil || errY != nil || !slices.EqualFunc(x, y, bytes.Equal)
}

func running(path string) (list [][]byte, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for _, s := range f.Sections {
		debug := strings.Contains(s.Name, "BTF") || s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_STRTAB
		if debug || s.Type == elf.SHT_NULL || s.Type == elf.SHT_NOBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, err
		}
		list = append(list, []byte(s.Name), data)
	}
	return list, nil
}

// including lists the programs that are made of a file, or of what includes it.
func (t *tree) including(file string) (list []unit) {
	files := append(sources(t.dir, "*.[ch]"), sources(filepath.Join(t.dir, "bpf/include"), "")...)
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
	for _, u := range t.units {
		if parts[u.source] {
			list = append(list, u)
		}
	}
	return list
}
