package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
	leftOut  *regexp.Regexp // packages
	built    bool
	lock     sync.Mutex
	binaries map[string]string
}

func (b *bench) binary(ctx context.Context, pkg string) (string, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.binaries[pkg] == "" {
		path := filepath.Join(b.dir, "..", strings.ReplaceAll(pkg, "/", "-")+".test")
		if b.built && exists(path) {
			b.binaries[pkg] = path
			return path, nil
		}
		if output, err := b.build(ctx, pkg, path); err != nil {
			return "", fmt.Errorf("build the tests of %s: %s: %w", pkg, output, err)
		}
		b.binaries[pkg] = path
	}
	return b.binaries[pkg], nil
}

func (b *bench) buildAll(ctx context.Context, packages []string) error {
	for _, pkg := range packages {
		if _, err := b.binary(ctx, pkg); err != nil {
			return err
		}
		fmt.Println("built", pkg)
	}
	return nil
}

// try lets a mutant meet the tests that are near it. The hints are tests that killed its neighbours.
func (b *bench) try(ctx context.Context, s drawn, hints []string) (tr trial, err error) {
	started := time.Now()
	tr = trial{drawn: s, Key: s.key}
	defer func() { tr.Took = time.Since(started) }()
	if inC(s) {
		err = b.tryC(ctx, &tr, hints)
		return tr, err
	}
	text, err := os.ReadFile(s.File)
	if err != nil {
		return tr, err
	}
	tr.Verdict = survived
	for _, r := range b.rounds(s.File, []string{filepath.Dir(s.File)}, s.File+": "+around(functionsOf(text), s.Line), hints) {
		if over, err := b.meet(ctx, &tr, r, fmt.Sprintf("%s=%d", whichMutant, s.number)); over || err != nil {
			return tr, err
		}
	}
	return tr, nil
}

// tryC compiles for every package's tests what these load.
func (b *bench) tryC(ctx context.Context, tr *trial, hints []string) error {
	dir, err := os.MkdirTemp(filepath.Join(b.dir, ".."), "objects-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	units := b.including(tr.File)
	var folders []string
	for _, u := range units {
		folder, _ := filepath.Rel(b.dir, u.folder)
		folders = append(folders, folder)
	}
	tr.Verdict = survived
	done := map[string]bool{}
	rounds := b.rounds(tr.File, folders, "", hints)
	if tr.named { // most are of words that another core wrote
		rounds = append([]round{{pkg: "tests/guards"}}, rounds...)
	}
	for _, r := range rounds {
		differs, output, err := b.compile(ctx, tr.drawn, r.pkg, dir, done)
		if err != nil {
			return err
		}
		if output != "" {
			tr.Verdict, tr.By = refused, output
			return nil
		}
		if !differs {
			if len(done) == len(units) && !slices.Contains(slices.Collect(maps.Values(done)), true) {
				tr.Verdict = same
				return nil
			}
			continue
		}
		if over, err := b.meet(ctx, tr, r, whichObjects+"="+dir); over || err != nil {
			return err
		}
	}
	return nil
}

// meet lets a mutant meet a round of tests. A test that fails has to fail again, and to pass without the mutant: a busy machine
// kills nothing. One that does not is left out, and the round begins again: the tests after it have not seen the mutant.
func (b *bench) meet(ctx context.Context, tr *trial, r round, env string) (over bool, err error) {
	binary, err := b.binary(ctx, r.pkg)
	if err != nil {
		return false, err
	}
	limit, skip := 25*time.Second+5*r.took, b.skip.String()
	for range patient {
		out, late, err := b.runTests(ctx, env, binary, r.pkg, limit, r.args(skip)...)
		by := failing(out)
		if err == nil || ctx.Err() != nil {
			return false, ctx.Err()
		}
		if by == "" { // no test had begun: a package's variables, which are set before
			if _, _, err := b.runTests(ctx, env, binary, r.pkg, limit, "-test.run", "^$"); err == nil || ctx.Err() != nil {
				return false, ctx.Err()
			}
			by = atStart
		}
		if strings.HasPrefix(r.only, by+"/") {
			by = r.only
		}
		only := []string{"-test.run", "^" + by + "$"}
		if by == atStart {
			only = []string{"-test.run", "^$"}
		}
		if _, _, err := b.runTests(ctx, env, binary, r.pkg, limit, only...); err == nil {
			if late {
				fmt.Printf("%s takes longer than %s: its later tests have not met %s\n", r.pkg, limit, tr.Site)
				return false, nil
			}
			skip += "|^" + by + "$"
			continue
		}
		if out, _, err := b.runTests(ctx, "", binary, r.pkg, limit, only...); err != nil {
			fmt.Printf("%s %s fails without a mutant: %s\n", r.pkg, by, lastLine(out))
			skip += "|^" + by + "$"
			continue
		}
		tr.Verdict, tr.By = killed, r.pkg+" "+by
		return true, nil
	}
	return false, ctx.Err()
}

// atStart stands for the test that kills a mutant with which no test begins.
const atStart = "start"

// patient is how often a round begins at most.
const patient = 3

// round is a package's tests of one length: the quick ones are before anybody's slow ones.
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
		return []string{"-test.run", "^" + r.only + "$", "-test.skip", skip}
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
func (b *bench) rounds(file string, changed []string, reach string, hints []string) []round {
	var list []round
	for _, hint := range hints {
		pkg, test, _ := strings.Cut(hint, " ")
		if s := b.Suites[pkg]; s.Fails == "" {
			list = append(list, round{pkg: pkg, only: test, took: s.Took[test]})
		}
	}
	type ranked struct {
		round
		rank int
	}
	var all []ranked
	for _, pkg := range b.users(changed, reach) {
		fast, slow := split(b.Suites[pkg], pkg, b.room)
		near := 2 * rank(pkg, file, changed)
		all = append(all, ranked{fast, near})
		if len(slow.slow) > 0 {
			all = append(all, ranked{slow, near + 1})
		}
	}
	slices.SortFunc(all, func(x, y ranked) int { return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.took, y.took)) })
	const others = 4 // twice the rank of those that are not near
	var sum time.Duration
	for _, r := range all {
		if r.rank > 0 {
			sum += r.took
		}
		if sum <= b.room || r.rank < others && len(r.slow) == 0 {
			list = append(list, r.round)
		}
	}
	return append(list, wide(file)...)
}

// wideTook is what one of these takes at most.
const wideTook = time.Minute

// wide lists tests of all algorithms that compare with what stands in files: they see what no test of an algorithm's own looks at.
func wide(file string) (list []round) {
	parts := strings.Split(file, "/")
	add := func(pkg, only string) { list = append(list, round{pkg: pkg, only: only, took: wideTook}) }
	if name := strings.Replace(parts[1], "rttarray", "rtt-array", 1); exists("tests/sweep/testdata/" + name + ".jsonl") {
		add("tests/sweep", "TestAnswers/^"+name)
	} else if parts[0] == "bpf" || parts[1] == "heavy" {
		add("tests/sweep", "TestAnswers")
	}
	switch {
	case parts[0] == "bpf" && exists("p4/"+parts[1]+"/twin.go"):
		add("tests/twins", "TestModel/^tofino1$/^"+parts[1])
	case parts[0] == "userspace" && (strings.Contains(file, "p4") || strings.Contains(file, "lean/entries")):
		add("p4", "TestGeneratedParts")
	}
	return list
}

// split a package's tests; those that were not measured are one round, for as long as there is time.
func split(s suite, pkg string, room time.Duration) (fast, slow round) {
	fast.pkg, slow.pkg = pkg, pkg
	if s.Took == nil {
		fast.took = room
	}
	for test, took := range s.Took {
		if took <= quick {
			fast.took += took
			continue
		}
		fast.skip = append(fast.skip, test)
		if took <= room {
			slow.slow = append(slow.slow, test)
			slow.took += took
		}
	}
	slices.Sort(fast.skip)
	slices.Sort(slow.slow)
	return fast, slow
}

// users of what changed; of a function in Go, those that reach it and those beside it. Of packages whose tests were not measured it is
// those with its name.
func (b *bench) users(changed []string, reach string) []string {
	var list []string
	for _, c := range changed {
		for _, pkg := range b.tests[c] {
			s := b.Suites[pkg]
			near := pkg == c || s.Reach == nil && (filepath.Base(pkg) == filepath.Base(c) || kin[c] == pkg)
			if s.Fails == "" && !b.leftOut.MatchString(pkg) && (near || s.Took != nil && (reach == "" || s.Reach[reach])) && !slices.Contains(list, pkg) {
				list = append(list, pkg)
			}
		}
	}
	return list
}

// kin are the tests of what has none of its name.
var kin = map[string]string{"bpf/chain": "tests/parser", "bpf/replay": "loader/replay", "tests/precision/hashpipe": "tests/precision", "tests/precision/cocosketch": "tests/precision",
	"bpf/hhh": "tests/precision", "userspace/hhh": "tests/precision", "userspace/heavy": "tests/precision",
	"userspace/top": "tests/top", "userspace/top/client": "tests/top", "userspace/top/model": "tests/top", "userspace/top/view": "tests/top", "userspace/web": "tests/page",
	"userspace/lean/entries": "userspace/lean", "userspace/config/parts": "userspace/agent/config", "userspace/outlet/settings": "userspace/agent/config"}

// rank is 0 for a changed package itself and for tests called like the file, 1 for tests of a package's name, 2 for others.
func rank(p, file string, changed []string) int {
	least := 2
	base := filepath.Base(p)
	if strings.HasPrefix(base, strings.TrimSuffix(filepath.Base(file), ".h")) {
		return 0
	}
	for _, c := range changed {
		switch {
		case p == c:
			return 0
		case (base == filepath.Base(c) || kin[c] == p) && len(changed) < 3:
			least = 1
		}
	}
	return least
}
