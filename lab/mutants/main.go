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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const module = "github.com/xdpmon/xdpmon"

// left out are tests of other things than bpf/ and userspace/, and those that need time, load or a network: who waits for
// them kills a mutant late, and who is disturbed kills it wrongly.
const (
	otherPackages = `^(loader(/(attach|detach|features|kernel|pin|pisa(/.*)?|privilege|status|watch))?|p4/tna|tests/(builder|house|isolated|netnstest|operator|testutil|traffic|windows)(/.*)?|cmd/xdpmon/internal(/.*)?)$`
	otherTests    = `(Live|Soak|Demo)([A-Z]|$)|^TestLong(Fuzz|Random)|UnderLoad$`
)

type options struct {
	count, workers          int
	seed, second            uint64
	fresh                   int
	room                    time.Duration
	only, out, dir          string
	skipPackages, skipTests *regexp.Regexp
	measure                 string
	keep, known, hold       bool
	prepare, built, table   bool
	commit                  string
	args                    []string
}

func main() {
	o := options{skipPackages: regexp.MustCompile(otherPackages), skipTests: regexp.MustCompile(otherTests), args: os.Args[1:]}
	flag.IntVar(&o.count, "n", 200, "mutants to judge, not counting those that do not compile; 0: only measure the tests")
	flag.Uint64Var(&o.seed, "seed", 1, "of the drawing")
	flag.Uint64Var(&o.second, "second", 2, "seed of another drawing, whose survivors nobody has looked at")
	flag.IntVar(&o.fresh, "fresh", 0, "mutants of the second seed to judge besides")
	flag.BoolVar(&o.hold, "hold", false, "judge only those of the second seed: a later run without it, which has the same binaries, judges the first's")
	flag.IntVar(&o.workers, "workers", 2, "copies of the tree that are tried in side by side")
	flag.DurationVar(&o.room, "room", 90*time.Second, "time of the tests that a mutant has to survive beyond the quick ones of its own name")
	flag.StringVar(&o.only, "only", "", "only files whose path contains this")
	flag.StringVar(&o.out, "out", "docs/mutants.md", "the table; - for none")
	flag.StringVar(&o.dir, "dir", filepath.Join(os.TempDir(), "xdpmon-mutants"), "where copies of the tree, times of the tests and the journal of verdicts are kept")
	flag.BoolVar(&o.keep, "keep", false, "take over what earlier commits killed; else its test is run again")
	flag.StringVar(&o.measure, "measure", ".", "regular expression of the packages whose tests are measured if they have changed; one that never was judges what has its name")
	flag.BoolVar(&o.known, "known", false, "what an earlier run has measured of tests stays, whatever has changed in them")
	flag.BoolVar(&o.prepare, "prepare", false, "only measure, and build the tests")
	flag.BoolVar(&o.built, "built", false, "the tests are built: by -prepare, with the same seed, number and sources")
	flag.BoolVar(&o.table, "table", false, "try nothing: write the table of what the journal has")
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
	list, err := o.draw(named, d)
	if err != nil {
		return err
	}
	j := &jury{options: o, left: list, equivalent: known, started: time.Now()}
	if o.table {
		return j.remembered()
	}
	b, err := o.bench(ctx)
	if err != nil {
		return err
	}
	if o.count == 0 {
		return nil
	}
	if j.broken, err = b.splice(ctx, list); err != nil {
		return err
	}
	if o.prepare {
		return b.buildAll(ctx, b.judges(o.skipPackages))
	}
	if j.journal, err = openJournal(filepath.Join(o.dir, "journal")); err != nil {
		return err
	}
	defer j.journal.file.Close()
	var wg sync.WaitGroup
	errs := make([]error, o.workers)
	for i := range errs {
		wg.Go(func() { errs[i] = j.sit(ctx, b) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		return err
	}
	if o.out == "-" {
		return nil
	}
	return j.write()
}

// draw lists so many mutants that those that do not compile are made up for, and after them those with a name.
func (o options) draw(named []drawn, d *drawer) (list []drawn, err error) {
	for len(list) < o.count+o.count/4 {
		s, ok := d.next()
		if !ok {
			break
		}
		list = append(list, s)
	}
	list = append(list, named...)
	fresh, err := o.drawFresh(list)
	if err != nil {
		return nil, err
	}
	list = append(list, fresh...)
	for n := range list {
		list[n].number = n + 1
	}
	// As they were drawn: what an interrupted run has judged is a sample of them, too.
	slices.SortStableFunc(list, func(a, b drawn) int { return a.turn() - b.turn() })
	return list, nil
}

// drawFresh lists mutants of the second seed that the first has not.
func (o options) drawFresh(list []drawn) (fresh []drawn, err error) {
	d, err := newDrawer(o.second, o.only)
	if err != nil {
		return nil, err
	}
	for len(fresh) < o.fresh {
		s, ok := d.next()
		if !ok {
			break
		}
		if !slices.ContainsFunc(list, func(o drawn) bool { return o.key == s.key }) {
			s.fresh = true
			fresh = append(fresh, s)
		}
	}
	return fresh, nil
}

func (s drawn) turn() int {
	switch {
	case s.named:
		return 2
	case s.fresh:
		return 1
	}
	return 0
}

func inC(s drawn) bool { return strings.HasPrefix(s.File, "bpf/") }

// bench copies the sources, and measures the tests.
func (o options) bench(ctx context.Context) (*bench, error) {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return nil, err
	}
	base, err := readBaseline(filepath.Join(o.dir, "baseline"), o.skipTests)
	if err != nil {
		return nil, err
	}
	t, err := copyTree(ctx, filepath.Join(o.dir, "tree"))
	if err != nil {
		return nil, err
	}
	b := &bench{tree: t, baseline: base, room: o.room, leftOut: o.skipPackages, built: o.built, binaries: map[string]string{}}
	which, err := regexp.Compile(o.measure)
	if err != nil {
		return nil, fmt.Errorf("-measure: %w", err)
	}
	judges := slices.DeleteFunc(t.judges(o.skipPackages), func(pkg string) bool { return !which.MatchString(pkg) })
	if o.known {
		judges = slices.DeleteFunc(judges, func(pkg string) bool { return base.Suites[pkg].Of != "" })
	}
	return b, base.measure(ctx, t, judges)
}

// jury judges mutants until there are enough.
type jury struct {
	options
	left       []drawn
	broken     map[string]bool // those that do not compile
	journal    *journal
	equivalent map[string]string
	started    time.Time

	lock    sync.Mutex
	trials  []trial
	byName  []trial
	unseen  []trial // of the second seed
	refused int
	begun   int
}

// remembered writes what earlier runs have found.
func (j *jury) remembered() (err error) {
	if j.journal, err = openJournal(filepath.Join(j.dir, "journal")); err != nil {
		return err
	}
	defer j.journal.file.Close()
	for _, s := range j.left {
		if tr, ok := j.journal.known[s.key]; ok {
			tr.drawn = s
			j.judged(tr)
		}
	}
	return j.write()
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
	for len(j.left) > 0 {
		s := j.left[0]
		j.left = j.left[1:]
		switch {
		case j.broken[s.key]:
			j.refused++
			continue
		case j.hold && !s.fresh:
			continue
		case s.named || s.fresh:
			return s, true
		case j.begun < j.count:
			j.begun++
			return s, true
		}
	}
	return drawn{}, false
}

func (j *jury) judged(tr trial) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if tr.named {
		j.byName = append(j.byName, tr)
		fmt.Printf("%6s named      %-9s %5s  %s  %s\n", time.Since(j.started).Round(time.Second), tr.Verdict, tr.Took.Round(100*time.Millisecond), tr.Site, tr.By)
		return
	}
	if tr.fresh {
		j.unseen = append(j.unseen, tr)
		fmt.Printf("%6s fresh %2d  %-9s %5s  %s  %s\n", time.Since(j.started).Round(time.Second), len(j.unseen), tr.Verdict, tr.Took.Round(100*time.Millisecond), tr.Site, tr.By)
		return
	}
	if tr.Verdict == refused {
		j.refused++
		j.begun--
		fmt.Printf("          %-9s %s  %s\n", tr.Verdict, tr.Site, tr.By)
		return
	}
	if why, ok := j.equivalent[tr.Key]; ok && tr.Verdict == survived {
		tr.reason = why
	}
	j.trials = append(j.trials, tr)
	fmt.Printf("%6s %3d of %d  %-9s %5s  %s  %s%s\n", time.Since(j.started).Round(time.Second), len(j.trials), j.count, tr.Verdict,
		tr.Took.Round(100*time.Millisecond), tr.Site, tr.By, tr.reason)
}

// equivalents is a list of changes that change nothing that can be seen: key, tab, reason.
const equivalents = "lab/mutants/equivalent.tsv"

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
