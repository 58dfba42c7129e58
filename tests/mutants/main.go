// Command mutants makes small changes to the data planes and to userspace, one at a time and drawn by a seed, and asks whether a
// test notices. It is `make mutants`; the last table stands in docs/mutants.md. The tree itself is never touched.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const module = "github.com/xdpmon/xdpmon"

type options struct {
	count, workers int
	seed           uint64
	room           time.Duration
	only, out      string
	args           []string
}

func main() {
	var o options
	flag.IntVar(&o.count, "n", 200, "mutants to judge, not counting those that do not compile")
	flag.Uint64Var(&o.seed, "seed", 1, "of the drawing")
	flag.IntVar(&o.workers, "workers", 2, "copies of the tree that are tried in side by side")
	flag.DurationVar(&o.room, "room", 90*time.Second, "time of the tests that a mutant has to survive beyond those of its own name")
	flag.StringVar(&o.only, "only", "", "only files whose path contains this")
	flag.StringVar(&o.out, "out", "docs/mutants.md", "the table")
	flag.Parse()
	o.args = os.Args[1:]
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	d, err := newDrawer(o.seed, o.only)
	if err != nil {
		return err
	}
	known, err := readEquivalents()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "xdpmon-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	trees, err := o.trees(ctx, dir)
	if err != nil {
		return err
	}
	j := &jury{options: o, drawer: d, known: known, started: time.Now()}
	var wg sync.WaitGroup
	errs := make([]error, len(trees))
	for i, t := range trees {
		wg.Go(func() { errs[i] = j.sit(ctx, t) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		return err
	}
	return j.write(context.WithoutCancel(ctx))
}

// trees copies the sources for every worker, and measures the tests once.
func (o options) trees(ctx context.Context, dir string) ([]*tree, error) {
	var list []*tree
	for i := range o.workers {
		t, err := copyTree(ctx, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	fmt.Println("running all tests once, unchanged")
	if err := list[0].baseline(ctx); err != nil {
		return nil, err
	}
	for _, t := range list[1:] {
		t.took = list[0].took
	}
	return list, nil
}

// jury judges mutants until there are enough.
type jury struct {
	options
	drawer  *drawer
	known   map[string]string
	started time.Time

	lock    sync.Mutex
	trials  []trial
	refused int
	begun   int
}

func (j *jury) sit(ctx context.Context, t *tree) error {
	for ctx.Err() == nil {
		s, ok := j.take()
		if !ok {
			return nil
		}
		tr, err := t.try(ctx, s.Site, j.room)
		if err != nil {
			return fmt.Errorf("try %s: %w", s, err)
		}
		j.judged(tr)
	}
	return nil
}

func (j *jury) take() (trial, bool) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if j.begun >= j.count {
		return trial{}, false
	}
	s, ok := j.drawer.next()
	if ok {
		j.begun++
	}
	return trial{Site: s}, ok
}

func (j *jury) judged(tr trial) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if tr.verdict == refused {
		j.refused++
		j.begun--
		return
	}
	if why, ok := j.known[tr.key]; ok && tr.verdict == survived {
		tr.reason = why
	}
	j.trials = append(j.trials, tr)
	fmt.Printf("%6s %3d  %-9s %s  %s%s\n", time.Since(j.started).Round(time.Second), len(j.trials), tr.verdict, tr.Site, tr.by, tr.reason)
}

// equivalents is a list of changes that change nothing that can be seen: key, tab, reason.
const equivalents = "tests/mutants/equivalent.tsv"

func readEquivalents() (map[string]string, error) {
	text, err := os.ReadFile(equivalents)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for row := range strings.Lines(string(text)) {
		key, why, ok := strings.Cut(strings.TrimSpace(row), "\t")
		if !ok {
			return nil, fmt.Errorf("read %s: %q has no reason", equivalents, row)
		}
		known[key] = why
	}
	return known, nil
}
