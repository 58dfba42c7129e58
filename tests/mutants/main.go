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
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

const module = "github.com/xdpmon/xdpmon"

// left out are tests of other things than bpf/ and userspace/, and those that need time, load or a network: who waits for
// them kills a mutant late, and who is disturbed kills it wrongly.
const (
	otherPackages = `^(loader|p4/tna|cmd/xdpmon/internal|tests/(bench|builder|contributing|emulator|eval|faults|kernels|mutants|netns|operator|soak|testutil|traffic|windows))(/|$)`
	otherTests    = `Live|Soak|Long|UnderLoad|Demo`
)

type options struct {
	count, workers          int
	seed                    uint64
	room                    time.Duration
	only, out, dir          string
	skipPackages, skipTests *regexp.Regexp
	keep                    bool
	commit                  string
	args                    []string
}

func main() {
	o := options{skipPackages: regexp.MustCompile(otherPackages), skipTests: regexp.MustCompile(otherTests), args: os.Args[1:]}
	flag.IntVar(&o.count, "n", 200, "mutants to judge, not counting those that do not compile")
	flag.Uint64Var(&o.seed, "seed", 1, "of the drawing")
	flag.IntVar(&o.workers, "workers", 2, "copies of the tree that are tried in side by side")
	flag.DurationVar(&o.room, "room", 90*time.Second, "time of the tests that a mutant has to survive beyond the quick ones of its own name")
	flag.StringVar(&o.only, "only", "", "only files whose path contains this")
	flag.StringVar(&o.out, "out", "docs/mutants.md", "the table; - for none")
	flag.StringVar(&o.dir, "dir", filepath.Join(os.TempDir(), "xdpmon-mutants"), "where copies of the tree, times of the tests and the journal of verdicts are kept")
	flag.BoolVar(&o.keep, "keep", false, "take over what earlier commits killed; else its test is run again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	o.commit = commit(ctx)
	d, err := newDrawer(o.seed, o.only)
	if err != nil {
		return err
	}
	named, err := readNamed(o.only)
	if err != nil {
		return err
	}
	known, err := readEquivalents()
	if err != nil {
		return err
	}
	benches, err := o.benches(ctx)
	if err != nil {
		return err
	}
	j := &jury{options: o, drawer: d, named: named, known: known, started: time.Now()}
	if j.journal, err = openJournal(filepath.Join(o.dir, "journal")); err != nil {
		return err
	}
	defer j.journal.file.Close()
	var wg sync.WaitGroup
	errs := make([]error, len(benches))
	for i, b := range benches {
		wg.Go(func() { errs[i] = j.sit(ctx, b) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		return err
	}
	if o.out == "-" {
		return nil
	}
	return j.write(context.WithoutCancel(ctx))
}

// benches copies the sources for every worker, and measures the tests.
func (o options) benches(ctx context.Context) ([]*bench, error) {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return nil, err
	}
	base, err := readBaseline(filepath.Join(o.dir, "baseline"), o.skipTests)
	if err != nil {
		return nil, err
	}
	still, err := copyTree(ctx, filepath.Join(o.dir, "plain"))
	if err != nil {
		return nil, err
	}
	var list []*bench
	for i := range o.workers {
		t, err := copyTree(ctx, filepath.Join(o.dir, fmt.Sprint(i)))
		if err != nil {
			return nil, err
		}
		list = append(list, &bench{tree: t, baseline: base, room: o.room, plain: &plain{tree: still, have: map[string]string{}}})
	}
	for _, b := range list[1:] {
		b.plain = list[0].plain
	}
	return list, base.measure(ctx, still, still.judges(o.skipPackages))
}

// jury judges mutants until there are enough.
type jury struct {
	options
	named   []drawn
	drawer  *drawer
	journal *journal
	known   map[string]string
	started time.Time

	lock    sync.Mutex
	trials  []trial
	byName  []trial
	refused int
	begun   int
}

func (j *jury) sit(ctx context.Context, b *bench) error {
	for ctx.Err() == nil {
		s, ok := j.take()
		if !ok {
			return nil
		}
		if tr, ok := j.journal.verdict(s, j.commit, j.keep); ok {
			j.judged(tr)
			continue
		}
		tr, err := b.try(ctx, s, j.journal.hints(s))
		if err != nil {
			return fmt.Errorf("try %s: %w", s, err)
		}
		tr.Commit = j.commit
		if err := j.journal.write(tr); err != nil {
			return err
		}
		j.judged(tr)
	}
	return nil
}

func (j *jury) take() (drawn, bool) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if len(j.named) > 0 {
		s := j.named[0]
		j.named = j.named[1:]
		return s, true
	}
	if j.begun >= j.count {
		return drawn{}, false
	}
	s, ok := j.drawer.next()
	if ok {
		j.begun++
	}
	return s, ok
}

func (j *jury) judged(tr trial) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if tr.named {
		j.byName = append(j.byName, tr)
		fmt.Printf("%6s named      %-9s %5s  %s  %s\n", time.Since(j.started).Round(time.Second), tr.Verdict, tr.Took.Round(100*time.Millisecond), tr.Site, tr.By)
		return
	}
	if tr.Verdict == refused {
		j.refused++
		j.begun--
		fmt.Printf("          %-9s %s  %s\n", tr.Verdict, tr.Site, tr.By)
		return
	}
	if why, ok := j.known[tr.Key]; ok && tr.Verdict == survived {
		tr.reason = why
	}
	j.trials = append(j.trials, tr)
	fmt.Printf("%6s %3d of %d  %-9s %5s  %s  %s%s\n", time.Since(j.started).Round(time.Second), len(j.trials), j.count, tr.Verdict,
		tr.Took.Round(100*time.Millisecond), tr.Site, tr.By, tr.reason)
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
