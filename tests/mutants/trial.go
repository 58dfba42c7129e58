package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// verdict on a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	same     verdict = "same code" // the compiler made the same of it
	refused  verdict = "refused"   // it does not compile: another is drawn
)

// trial is a mutant and what became of it.
type trial struct {
	drawn   `json:"-"`
	Key     string
	Verdict verdict
	By      string // package and test that killed it
	Commit  string
	Took    time.Duration
	reason  string // why it is equivalent
}

// bench tries mutants. The tests of a package are compiled once, with all mutants in Go; those in C are loaded.
type bench struct {
	*tree
	*baseline
	room     time.Duration
	lock     sync.Mutex
	binaries map[string]string
}

func (b *bench) binary(ctx context.Context, pkg string) (string, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.binaries[pkg] == "" {
		path := filepath.Join(b.dir, "..", strings.ReplaceAll(pkg, "/", "-")+".test")
		if said, err := b.build(ctx, pkg, path); err != nil {
			return "", fmt.Errorf("build the tests of %s: %s: %w", pkg, said, err)
		}
		b.binaries[pkg] = path
	}
	return b.binaries[pkg], nil
}

// try lets a mutant meet the tests that are near it. The hints are tests that killed its neighbours.
func (b *bench) try(ctx context.Context, s drawn, hints []string) (tr trial, err error) {
	started := time.Now()
	tr = trial{drawn: s, Key: s.key}
	defer func() { tr.Took = time.Since(started) }()
	changed, reach, env := []string{filepath.Dir(s.File)}, "", fmt.Sprintf("%s=%d", whichMutant, s.number)
	if strings.HasPrefix(s.File, "bpf/") {
		dir, err := os.MkdirTemp(filepath.Join(b.dir, ".."), "objects-")
		if err != nil {
			return tr, err
		}
		defer os.RemoveAll(dir)
		env = whichObjects + "=" + dir
		list, said, err := b.compile(ctx, s, dir)
		if err != nil || said != "" {
			tr.Verdict, tr.By = refused, said
			return tr, err
		}
		if changed = list; len(changed) == 0 {
			tr.Verdict = same
			return tr, nil
		}
	} else {
		text, err := os.ReadFile(s.File)
		if err != nil {
			return tr, err
		}
		reach = s.File + ": " + around(functionsOf(text), s.Line)
	}
	tr.Verdict = survived
	for _, r := range b.rounds(changed, reach, hints) {
		by, err := b.meet(ctx, r, env)
		if err != nil {
			return tr, err
		}
		if by != "" {
			tr.Verdict, tr.By = killed, r.pkg+" "+by
			return tr, nil
		}
	}
	return tr, nil
}

// meet lets a mutant meet a round of tests. A test that fails has to fail again, and to pass without the mutant: a busy machine
// kills nothing.
func (b *bench) meet(ctx context.Context, r round, env string) (by string, err error) {
	binary, err := b.binary(ctx, r.pkg)
	if err != nil {
		return "", err
	}
	limit := 15*time.Second + 5*r.took
	out, err := b.runTests(ctx, env, binary, r.pkg, limit, r.args(b.skip.String())...)
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	if by = failing(out); by == "" {
		return "", nil
	}
	only := []string{"-test.run", "^" + by + "$"}
	if _, err := b.runTests(ctx, env, binary, r.pkg, limit, only...); err == nil {
		return "", nil
	}
	if out, err := b.runTests(ctx, "", binary, r.pkg, limit, only...); err != nil {
		fmt.Printf("%s %s fails without a mutant: %s\n", r.pkg, by, lastLine(out))
		return "", ctx.Err()
	}
	return by, nil
}

// round is a package's tests of one length: the quick ones come before anybody's slow ones.
type round struct {
	pkg  string
	only string   // one test that killed a neighbour
	skip []string // in a round of quick tests
	slow []string // in a round of slow ones
	took time.Duration
}

func (r round) args(skip string) []string {
	switch {
	case r.only != "":
		return []string{"-test.run", "^" + r.only + "$"}
	case len(r.slow) > 0:
		return []string{"-test.run", "^(" + strings.Join(r.slow, "|") + ")$", "-test.skip", skip}
	case len(r.skip) > 0:
		return []string{"-test.skip", skip + "|^(" + strings.Join(r.skip, "|") + ")$"}
	}
	return []string{"-test.skip", skip}
}

// quick is a test that every round may afford.
const quick = 3 * time.Second

// rounds lists the tests that may see a change: hints, a package's own, those of its name, then others that reach the function, as
// long as they fit the time.
func (b *bench) rounds(changed []string, reach string, hints []string) []round {
	var list []round
	for _, hint := range hints {
		pkg, test, _ := strings.Cut(hint, " ")
		if s, ok := b.Suites[pkg]; ok && s.Fails == "" {
			list = append(list, round{pkg: pkg, only: test, took: s.Took[test]})
		}
	}
	type ranked struct {
		round
		rank int
	}
	var all []ranked
	for _, pkg := range b.users(changed, reach) {
		fast, slow := split(b.Suites[pkg], pkg)
		near := rank(pkg, changed)
		all = append(all, ranked{fast, near})
		if len(slow.slow) > 0 {
			all = append(all, ranked{slow, near + 3})
		}
	}
	slices.SortFunc(all, func(x, y ranked) int { return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.took, y.took)) })
	var sum time.Duration
	for _, r := range all {
		if sum += r.took; sum <= b.room || r.rank < 2 {
			list = append(list, r.round)
		}
	}
	return list
}

func split(s suite, pkg string) (fast, slow round) {
	fast.pkg, slow.pkg = pkg, pkg
	for test, took := range s.Took {
		if took <= quick {
			fast.took += took
			continue
		}
		fast.skip = append(fast.skip, test)
		slow.slow = append(slow.slow, test)
		slow.took += took
	}
	slices.Sort(fast.skip)
	slices.Sort(slow.slow)
	return fast, slow
}

// users of what changed; of a function in Go, those that reach it and those beside it.
func (b *bench) users(changed []string, reach string) []string {
	var list []string
	for _, c := range changed {
		for _, pkg := range b.tests[c] {
			s, ok := b.Suites[pkg]
			if ok && s.Fails == "" && (reach == "" || s.Reach[reach] || pkg == c || s.Reach == nil && filepath.Base(pkg) == filepath.Base(c)) && !slices.Contains(list, pkg) {
				list = append(list, pkg)
			}
		}
	}
	return list
}

// rank is 0 for a changed package itself, 1 for tests of the same name, 2 for others.
func rank(p string, changed []string) int {
	least := 2
	for _, c := range changed {
		switch {
		case p == c:
			return 0
		case filepath.Base(p) == filepath.Base(c):
			least = 1
		}
	}
	return least
}
