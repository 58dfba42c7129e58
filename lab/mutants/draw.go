package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/lab/mutants/site"
)

// drawn is a site, and its name (site.Key, numbered where a file has the same line twice).
type drawn struct {
	site.Site
	key    string
	named  bool
	fresh  bool // of the second seed
	number int  // among all of a run, from 1
}

// drawer draws sites without repeating one: area by area in turn, in it operator by operator, of it a site. So a large folder does
// not crowd out a small one, nor a common operator a rare one. The order is that of a hash of seed and name: an edit leaves what
// it did not touch where it was drawn.
type drawer struct {
	seed  uint64
	names []string
	areas map[string][]drawn
	turn  int
}

func newDrawer(seed uint64, only string) (*drawer, error) {
	d := &drawer{seed: seed, areas: map[string][]drawn{}}
	for _, root := range []string{"bpf", "userspace"} {
		err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || !shipped(path) || !strings.Contains(path, only) {
				return err
			}
			return d.file(path)
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", root, err)
		}
	}
	for name, list := range d.areas {
		d.areas[name] = d.shuffled(list)
	}
	d.names = slices.Sorted(maps.Keys(d.areas))
	slices.SortStableFunc(d.names, func(a, b string) int { return cmp.Compare(d.hash(a), d.hash(b)) })
	return d, nil
}

// shipped leaves out tests and what is generated.
func shipped(path string) bool {
	name := filepath.Base(path)
	switch filepath.Ext(name) {
	case ".go":
		return !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "_bpfel") && !strings.HasSuffix(name, "_gen.go") && strings.HasPrefix(path, "userspace")
	case ".c", ".h":
		return true
	}
	return false
}

// area is a folder; the parser is one by itself.
func area(file string) string {
	if filepath.Base(file) == "parse.h" {
		return file
	}
	return filepath.Dir(file)
}

func (d *drawer) file(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	list := site.C(path, text)
	if filepath.Ext(path) == ".go" {
		if list, err = site.Go(path, text); err != nil {
			return err
		}
	}
	times := map[string]int{}
	for _, s := range list {
		key := s.Key(text)
		if times[key]++; times[key] > 1 {
			key += fmt.Sprint(" #", times[key])
		}
		d.areas[area(path)] = append(d.areas[area(path)], drawn{Site: s, key: key})
	}
	return nil
}

func (d *drawer) hash(text string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, d.seed, text)
	x := h.Sum64() // whose high bits hardly depend on the last letters
	x = (x ^ x>>32) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// shuffled deals the operators' sites in turn.
func (d *drawer) shuffled(list []drawn) []drawn {
	slices.SortStableFunc(list, func(a, b drawn) int { return cmp.Compare(d.hash(a.key), d.hash(b.key)) })
	seen, round := map[string]int{}, map[string]int{}
	for _, s := range list {
		round[s.key] = seen[s.Operator]
		seen[s.Operator]++
	}
	slices.SortStableFunc(list, func(a, b drawn) int {
		return cmp.Or(cmp.Compare(round[a.key], round[b.key]), cmp.Compare(d.hash(area(a.File)+a.Operator), d.hash(area(b.File)+b.Operator)))
	})
	return list
}

// next site; false when none is left.
func (d *drawer) next() (drawn, bool) {
	for range d.names {
		name := d.names[d.turn%len(d.names)]
		d.turn++
		if list := d.areas[name]; len(list) > 0 {
			d.areas[name] = list[1:]
			return list[0], true
		}
	}
	return drawn{}, false
}
