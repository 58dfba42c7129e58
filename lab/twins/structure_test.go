package twins

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/lab/twins/mutate"
	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/structure"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

const (
	structuralBugs = 5 // of a twin
	structuralSeed = 30_1126
	structuralEnv  = "XDPMON_TWIN_STRUCTURAL" // more of each twin
)

// compared is a twin's program in a form and for a chip, beside what the host does.
type compared struct {
	program *syntax.Program
	used    []string
	host    []pisa.Touch
	as      string // its structure as it stands
}

// TestStructuralDifferences: every difference in structure that is planted is found by the comparison that `make test` runs
// (p4/tna/structure). What leaves all sources of all registers where they are is no such difference, however wrong: another condition of the
// same sources is left, or another action of the same register. TestPlantedBugs plants those, too.
func TestStructuralDifferences(t *testing.T) {
	planted, found, same := 0, 0, 0
	for i, tw := range twin.All() {
		t.Run(tw.Name, func(t *testing.T) {
			p, f, s := plantStructure(t, tw, i)
			planted, found, same = planted+p, found+f, same+s
		})
	}
	t.Logf("%d of %d found; %d more that were drawn change no source", found, planted, same)
}

func plantStructure(t *testing.T, tw *twin.Twin, i int) (planted, found, same int) {
	all := readForms(t, tw)
	byKind, places := structuralBugsOf(all)
	// Another kind first for each twin.
	first := i % len(mutate.StructuralKinds)
	kinds := slices.Concat(mutate.StructuralKinds[first:], mutate.StructuralKinds[:first])
	r := rand.New(rand.NewPCG(uint64(setting(t, seedEnv, structuralSeed)), uint64(i)))
	want := setting(t, structuralEnv, structuralBugs)
	for _, b := range mutate.DrawOf(kinds, byKind, r, 10*want) {
		if planted == want {
			break
		}
		for _, in := range places[b.String()] {
			in.Plant()
		}
		changed := slices.ContainsFunc(all, func(c *compared) bool { return structureOf(c, tw) != c.as })
		complaints := complain(t, tw, all)
		for _, in := range places[b.String()] {
			in.Remove()
		}
		switch {
		case !changed && len(complaints) == 0:
			same++
			t.Logf("changes no source: %s", b)
			continue
		case len(complaints) == 0:
			t.Errorf("not found: %s", b)
		default:
			found++
			t.Logf("%s: %s", b, complaints[0])
		}
		planted++
	}
	if complaints := complain(t, tw, all); len(complaints) > 0 {
		t.Errorf("without a bug: %v", complaints)
	}
	return planted, found, same
}

// structuralBugsOf all forms: each once by kind, and where it is in every form.
func structuralBugsOf(all []*compared) (byKind, places map[string][]*mutate.Bug) {
	stages := map[string]int{}
	for _, c := range all {
		for _, h := range c.host {
			stages[h.Array] = h.Stage
		}
	}
	byKind, places = map[string][]*mutate.Bug{}, map[string][]*mutate.Bug{}
	for _, c := range all {
		for kind, bugs := range mutate.FindStructural(c.program, c.used, stages) {
			for _, b := range bugs {
				if places[b.String()] == nil {
					byKind[kind] = append(byKind[kind], b)
				}
				places[b.String()] = append(places[b.String()], b)
			}
		}
	}
	return byKind, places
}

func readForms(t *testing.T, tw *twin.Twin) (all []*compared) {
	t.Helper()
	for _, form := range tw.FormsOf() {
		host, err := structure.OfHost(tw, form)
		if err != nil {
			t.Fatal(err)
		}
		files, err := tw.Text(form)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []run.Target{run.Tofino1, run.Tofino2} {
			program, err := run.Read(files, tw.Name+"/top.p4", target, form.Define)
			if err != nil {
				t.Fatal(err)
			}
			sw, err := run.New(program, target)
			if err != nil {
				t.Fatal(err)
			}
			c := &compared{program: program, used: sw.Controls, host: host}
			c.as = structureOf(c, tw)
			all = append(all, c)
		}
	}
	return all
}

func structureOf(c *compared, tw *twin.Twin) string {
	touches, err := structure.Of(c.program, structure.WindowOf(tw))
	return fmt.Sprintf("%+v %v", touches, err)
}

// complain is what the test of p4/tna/structure says.
func complain(t *testing.T, tw *twin.Twin, all []*compared) (complaints []string) {
	t.Helper()
	list, err := structure.ListOf(tw)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		touches, err := structure.Of(c.program, structure.WindowOf(tw))
		if err != nil {
			return []string{err.Error()}
		}
		for _, d := range list.Unlisted(c.host, touches) {
			complaints = append(complaints, d.String())
		}
	}
	return append(complaints, list.Unused()...)
}
