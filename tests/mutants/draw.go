package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/tests/mutants/site"
)

// drawer draws sites without repeating one: folder by folder in turn, in it an operator, of it a site. So a large folder does
// not crowd out a small one, nor a common operator a rare one.
type drawer struct {
	rand    *rand.Rand
	folders []string
	sites   map[string]map[string][]site.Site // folder, operator
	turn    int
}

func newDrawer(seed uint64, only string) (*drawer, error) {
	d := &drawer{rand: rand.New(rand.NewPCG(seed, 0)), sites: map[string]map[string][]site.Site{}}
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
	d.folders = slices.Sorted(maps.Keys(d.sites))
	d.rand.Shuffle(len(d.folders), func(i, j int) { d.folders[i], d.folders[j] = d.folders[j], d.folders[i] })
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
	for _, s := range list {
		folder := filepath.Dir(path)
		if d.sites[folder] == nil {
			d.sites[folder] = map[string][]site.Site{}
		}
		d.sites[folder][s.Operator] = append(d.sites[folder][s.Operator], s)
	}
	return nil
}

// next site; false when none is left.
func (d *drawer) next() (site.Site, bool) {
	for range d.folders {
		folder := d.sites[d.folders[d.turn%len(d.folders)]]
		d.turn++
		operators := slices.Sorted(maps.Keys(folder))
		if len(operators) == 0 {
			continue
		}
		o := operators[d.rand.IntN(len(operators))]
		i := d.rand.IntN(len(folder[o]))
		s := folder[o][i]
		if folder[o] = slices.Delete(folder[o], i, i+1); len(folder[o]) == 0 {
			delete(folder, o)
		}
		return s, true
	}
	return site.Site{}, false
}
