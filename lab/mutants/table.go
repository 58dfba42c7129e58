package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

type sum struct{ drawn, killed, equivalent, survived int }

func (s *sum) add(t trial) {
	s.drawn++
	switch {
	case t.Verdict == killed:
		s.killed++
	case t.Verdict == same || t.reason != "":
		s.equivalent++
	default:
		s.survived++
	}
}

func (s sum) row(name string) []string {
	share := float64(s.killed) / float64(s.drawn-s.equivalent)
	return []string{name, fmt.Sprint(s.drawn), fmt.Sprint(s.killed), fmt.Sprint(s.equivalent), fmt.Sprint(s.survived), figure.Percent(share)}
}

// write makes the document: sums by folder and by operator, the survivors, and the equivalent ones with their reasons.
func (j *jury) write() error {
	var b strings.Builder
	b.WriteString("# Mutants\n\nSmall changes to `bpf/` and `userspace/`, drawn by a seed, one at a time: does a test notice? Areas take turns, and the " +
		"kinds of change in them, so that what is small is met like what is large. A mutant meets the tests of its own package and of its " +
		"name, then the others that reach the function, quickest first, as long as they fit the time, then the answers of all algorithms and what " +
		"compares twins; tests that need a network or load are left out. They are judged in the order of the drawing. A test that fails has to fail twice and to pass without the mutant. Equivalent are those whose instructions are the same, " +
		"and those of `" + equivalents + "`, each with its reason.\n\n")
	fmt.Fprintf(&b, "*%s, commit %s, `lab/run mutants %s`. %d more did not compile.%s*\n\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		j.commit, strings.Join(j.args, " "), j.refused, j.earlier())
	b.WriteString("## With a name\n\nFaults that once no test noticed, and the test that does now.\n\n")
	if len(j.byName) == 0 {
		b.WriteString("None was judged in this run.\n\n")
	}
	named := &figure.Table{Columns: []string{"fault", "file", "", "by"}}
	for _, t := range j.byName {
		named.Add(t.Operator, "`"+t.File+"`", string(t.Verdict), "`"+t.By+"`")
	}
	b.WriteString(named.String() + "\n## Drawn\n\n")
	j.sums(&b, "area", func(t trial) string { return "`" + area(t.File) + "`" })
	b.WriteString(j.sums(&b, "kind of change", func(t trial) string { return t.Operator }).share())
	j.check(&b)
	j.list(&b, "Survived", func(t trial) bool { return t.Verdict == survived && t.reason == "" })
	j.list(&b, "Equivalent", func(t trial) bool { return t.reason != "" })
	b.WriteString("## What was read of it\n\n")
	b.WriteString(handMark + byHand(j.out) + handEnd)
	return os.WriteFile(j.out, []byte(b.String()), 0o644)
}

// Between these marks of the document stands what people wrote of earlier tables. A run keeps it.
const handMark, handEnd = "<!-- by hand -->\n", "<!-- end -->\n"

func byHand(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	_, part, _ := strings.Cut(string(text), handMark)
	part, _, _ = strings.Cut(part, handEnd)
	return part
}

// check is the rate among those whose survivors nobody has looked at before.
func (j *jury) check(b *strings.Builder) {
	var s sum
	var left []string
	for _, t := range j.unseen {
		if t.Verdict == refused {
			continue
		}
		s.add(t)
		if t.Verdict == survived {
			left = append(left, "- `"+strings.ReplaceAll(t.Key, "`", "'")+"` ("+t.Operator+")")
		}
	}
	if s.drawn == 0 {
		return
	}
	fmt.Fprintf(b, "## Another seed\n\nTests were written for survivors of the seed above. Of %d mutants of seed %d, for which none was, %d were killed and %d are equivalent: "+
		"%s of those not equivalent.\n\n%s\n\n", s.drawn, j.second, s.killed, s.equivalent, s.row("")[5], strings.Join(left, "\n"))
}

// earlier states how many verdicts are of earlier commits.
func (j *jury) earlier() string {
	n := 0
	for _, t := range j.trials {
		if t.Commit != j.commit {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" %d verdicts are of earlier commits of the same day, for the same line.", n)
}

func (j *jury) sums(b *strings.Builder, what string, name func(trial) string) (all sum) {
	by := map[string]*sum{}
	for _, t := range j.trials {
		if by[name(t)] == nil {
			by[name(t)] = &sum{}
		}
		by[name(t)].add(t)
		all.add(t)
	}
	table := &figure.Table{Columns: []string{what, "drawn", "killed", "equivalent", "survived", "killed of those not equivalent"}}
	for _, k := range slices.Sorted(maps.Keys(by)) {
		table.Add(by[k].row(k)...)
	}
	table.Add(all.row("**all**")...)
	b.WriteString(table.String() + "\n")
	return all
}

// share is the one that the tests are worth.
func (s sum) share() string {
	if s.drawn == 0 {
		return ""
	}
	n := s.killed + s.equivalent
	low, high := interval(n, s.drawn)
	return fmt.Sprintf("Killed or equivalent: %d of %d, %s (95 %%: %s to %s).\n\n", n, s.drawn, figure.Percent(float64(n)/float64(s.drawn)), figure.Percent(low), figure.Percent(high))
}

// interval of a share of which n of all were seen, 95 % (Wilson).
func interval(n, all int) (low, high float64) {
	const z = 1.96
	p, size := float64(n)/float64(all), float64(all)
	middle := (p + z*z/(2*size)) / (1 + z*z/size)
	half := z / (1 + z*z/size) * math.Sqrt(p*(1-p)/size+z*z/(4*size*size))
	return middle - half, middle + half
}

func (j *jury) list(b *strings.Builder, title string, which func(trial) bool) {
	fmt.Fprintf(b, "## %s\n\n", title)
	for _, t := range j.trials {
		if which(t) {
			fmt.Fprintf(b, "- `%s` (%s)%s\n", strings.ReplaceAll(t.Key, "`", "'"), t.Operator, because(t.reason))
		}
	}
	b.WriteString("\n")
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
