// Command gen writes lists of imports from the folders: every OF/NAME for which there is a file of each kind that -with names; with -constants, the
// names of the constants of the objects in OF/NAME. It is run by go generate, and a test compares.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/xdpmon/xdpmon"

// list lists the folders that are imported.
type list struct {
	root, of string
	with     []string // files, with NAME for the folder's name
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	var l list
	flag.StringVar(&l.root, "root", ".", "root of the repository")
	flag.StringVar(&l.of, "of", "", "folder whose folders are imported")
	flag.Func("with", "`PATTERN` of a file that NAME has, more than once", func(s string) error { l.with = append(l.with, s); return nil })
	out := flag.String("out", "all_gen.go", "file to write")
	named := flag.Bool("constants", false, "name constants instead")
	flag.Parse()
	generate := l.generate
	if *named {
		generate = constants{l.root, l.of}.generate
	}
	text, err := generate()
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// names of the folders, sorted.
func (l list) names() (names []string, err error) {
	if len(l.with) == 0 {
		return nil, errors.New("no list of what is to be in a folder")
	}
	entries, err := os.ReadDir(filepath.Join(l.root, l.of))
	if err != nil {
		return nil, fmt.Errorf("find folders: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.ContainsFunc(l.with, func(pattern string) bool { return !l.has(pattern, e.Name()) }) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (l list) has(pattern, name string) bool {
	found, err := filepath.Glob(filepath.Join(l.root, strings.ReplaceAll(pattern, "NAME", name)))
	return err == nil && len(found) > 0
}

// generate is the text of package all.
func (l list) generate() ([]byte, error) {
	names, err := l.names()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("// Code generated from the folders; DO NOT EDIT.\n\npackage all\n\nimport (\n")
	for _, name := range names {
		fmt.Fprintf(&b, "\t_ %q\n", module+"/"+l.of+"/"+name)
	}
	b.WriteString(")\n")
	return format.Source([]byte(b.String()))
}
