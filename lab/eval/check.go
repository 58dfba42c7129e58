package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrDiffers is returned when a section that ran again says something else than its page, beyond what that allows.
var ErrDiffers = errors.New("sections differ from their pages")

// tenth of all sections is checked unless some are named.
const tenth = 10

// place of a section.
type place struct {
	study   *Study
	section Section
}

func (p place) String() string { return p.study.Name + "." + p.section.Name }

// Check runs sections again and compares with their pages, which it does not change: those that are named, or a tenth of all, drawn with a seed.
// Numbers are the same, or they are printed with a spread (x ± s) that explains the difference.
func Check(ctx context.Context, o Options, seed uint64) error {
	if err := o.check(); err != nil {
		return err
	}
	list := o.drawn(seed)
	if len(o.Only) == 0 {
		o.Log("%d sections, drawn with -draw %d", len(list), seed)
	}
	o.Log("check of %v by %s", list, sourcesNow(ctx))
	differ := 0
	for _, at := range list {
		same, err := o.again(ctx, at)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			o.Log("%s: %v", at, err)
		}
		if err != nil || !same {
			differ++
		}
	}
	if differ > 0 {
		return fmt.Errorf("%w: %d of %d", ErrDiffers, differ, len(list))
	}
	return nil
}

// drawn are the sections to check, in order.
func (o *Options) drawn(seed uint64) (list []place) {
	for _, s := range studies {
		for _, section := range s.Sections {
			if o.wants(s.Name, section.Name) {
				list = append(list, place{s, section})
			}
		}
	}
	if len(o.Only) > 0 {
		return list
	}
	order := rand.New(rand.NewPCG(seed, 1)).Perm(len(list))[:(len(list)+tenth-1)/tenth]
	slices.Sort(order)
	part := make([]place, len(order))
	for i, n := range order {
		part[i] = list[n]
	}
	return part
}

var (
	footerSeeds = regexp.MustCompile(`-seeds (\d+)`)
	footerFrom  = regexp.MustCompile(`(?m)^\*\d{4}-[^,]*, ([^,]*),.*\*$`)
	shown       = regexp.MustCompile(`!\[[^\]]*\]\(([^)]+)\)`)
)

// again runs a section as its footer says, and reports whether its page stands.
func (o *Options) again(ctx context.Context, at place) (bool, error) {
	old, err := ReadSection(filepath.Join(o.Dir, at.study.Name+".md"), at.section.Name)
	if err != nil {
		return false, err
	}
	folder, err := os.MkdirTemp("", "xdpmon-eval-")
	if err != nil {
		return false, fmt.Errorf("make folder for figures: %w", err)
	}
	defer os.RemoveAll(folder)
	page := NewPage(folder, at.study.Name, o.Quick, o.Log)
	page.Look = o.Look
	if m := footerSeeds.FindStringSubmatch(old); m != nil && page.Seeds == 0 {
		page.Seeds, _ = strconv.Atoi(m[1])
	}
	text, err := at.section.run(ctx, page, "")
	if err != nil {
		return false, fmt.Errorf("run again: %w", err)
	}
	return o.judge(at, old, text, folder)
}

func (o *Options) judge(at place, old, text, folder string) (bool, error) {
	all := compare(body(old), body(text))
	beyond := slices.DeleteFunc(slices.Clone(all), func(d difference) bool { return d.allowed })
	if len(all) == 0 {
		names, err := figuresDiffer(old, o.Dir, folder)
		if err != nil || len(names) > 0 {
			o.Log("%s (%s): same text, other figures: %v", at, origin(old), names)
			return false, err
		}
	}
	o.Log("%s (%s): %d differences, %d of them beyond what the page allows", at, origin(old), len(all), len(beyond))
	for _, d := range beyond[:min(len(beyond), mostShown)] {
		o.Log("    %s", d)
	}
	return len(beyond) == 0, nil
}

// mostShown of a section's differences are logged.
const mostShown = 12

// origin is the commit of a section, by its footer.
func origin(part string) string {
	m := footerFrom.FindStringSubmatch(part)
	if m == nil {
		return "unknown commit"
	}
	return m[1]
}

// body of a section: without its footer, where dates and durations are.
func body(part string) string {
	part = strings.TrimRight(part, "\n")
	if n := strings.LastIndex(part, "\n*"); n >= 0 {
		part = part[:n]
	}
	return strings.TrimRight(part, "\n")
}

// figuresDiffer are the figures of a section that are not byte for byte the same in two folders.
func figuresDiffer(part, a, b string) (names []string, err error) {
	for _, m := range shown.FindAllStringSubmatch(part, -1) {
		one, err := os.ReadFile(filepath.Join(a, m[1]))
		if err != nil {
			return nil, fmt.Errorf("read figure: %w", err)
		}
		other, err := os.ReadFile(filepath.Join(b, m[1]))
		if err != nil {
			return nil, fmt.Errorf("read figure: %w", err)
		}
		if !bytes.Equal(one, other) {
			names = append(names, m[1])
		}
	}
	return names, nil
}
