package main

import (
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// constants lists the folders for whose objects constants are generated.
type constants struct{ root, of string }

// bpf2go writes a struct of an object's variables, with their names as tags.
var (
	variables = regexp.MustCompile(`(?s)type \w+VariableSpecs struct \{\n(.*?)\n\}`)
	field     = regexp.MustCompile("(?m)^\\s*(\\w+)\\s+\\*ebpf\\.VariableSpec `ebpf:\"(\\w+)\"`$")
	array     = regexp.MustCompile("\\*ebpf\\.MapSpec\\s+`ebpf:\"(\\w+)\"`")
)

// Variables that are not set by name: those that keep types in an object's BTF, and the sizes of arrays, which maps.SetEntries sets.
const (
	unused  = "unused_"
	entries = "_entries"
)

// generate is the text of package constant.
func (c constants) generate() ([]byte, error) {
	paths, err := filepath.Glob(filepath.Join(c.root, c.of, "*", "*_bpfel.go"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("name constants: no objects in %s: %v", c.of, err)
	}
	names := map[string]string{} // by identifier
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("name constants: %w", err)
		}
		sized := map[string]bool{}
		for _, m := range array.FindAllSubmatch(text, -1) {
			sized[string(m[1])+entries] = true
		}
		for _, body := range variables.FindAllSubmatch(text, -1) {
			for _, f := range field.FindAllSubmatch(body[1], -1) {
				identifier, name := string(f[1]), string(f[2])
				if other, taken := names[identifier]; taken && other != name {
					return nil, fmt.Errorf("name constants: %s and %s are both %s", other, name, identifier)
				}
				if !strings.HasPrefix(name, unused) && !sized[name] {
					names[identifier] = name
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("// Code generated from the objects; DO NOT EDIT.\n\npackage constant\n\n// The constants of all objects.\nvar (\n")
	for _, identifier := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "\t%s = Name{%q}\n", identifier, names[identifier])
	}
	b.WriteString(")\n")
	return format.Source([]byte(b.String()))
}
