package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/xdpmon/xdpmon/lab/mutants/site"
)

// named is a list of faults that have names, because one day no test noticed them: what, file, old text, new text, with tabs between
// them. They are judged in every run, before those that are drawn.
const namedFile = "lab/mutants/named.tsv"

func readNamed(only string) ([]drawn, error) {
	rows, err := os.ReadFile(namedFile)
	if err != nil {
		return nil, err
	}
	var list []drawn
	for row := range strings.Lines(string(rows)) {
		f := strings.Split(strings.TrimRight(row, "\n"), "\t")
		if len(f) != 4 {
			return nil, fmt.Errorf("read %s: %d fields in %q, want 4", namedFile, len(f), row)
		}
		if !strings.Contains(f[1], only) {
			continue
		}
		text, err := os.ReadFile(f[1])
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", namedFile, err)
		}
		if n := bytes.Count(text, []byte(f[2])); n != 1 {
			return nil, fmt.Errorf("read %s: %s has %q %d times, want once", namedFile, f[1], f[2], n)
		}
		at := bytes.Index(text, []byte(f[2]))
		s := site.Site{File: f[1], Line: 1 + bytes.Count(text[:at], []byte("\n")), Operator: f[0], From: at, To: at + len(f[2]), Old: f[2], New: f[3]}
		list = append(list, drawn{Site: s, key: s.Key(text), named: true})
	}
	return list, nil
}
