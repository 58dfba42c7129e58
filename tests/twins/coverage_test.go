package twins

import (
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// covered lists the branches, actions, states and table entries that are written by hand, and those of them that packets did
// not reach. Generated tables (tables.p4) have thousands of entries, bins of every size, of which any capture meets a part; they are not counted here.
func covered(sw *run.Switch) (reached map[string]bool) {
	reached = map[string]bool{}
	note := func(file string, runs uint64, what string) {
		if strings.HasSuffix(file, "/tables.p4") || strings.HasSuffix(file, "/switch.p4") {
			return
		}
		reached[what] = reached[what] || runs > 0
	}
	for _, s := range sw.Spots {
		note(s.File, s.Runs, s.Pos.String()+" "+s.Name)
	}
	for _, t := range sw.Tables {
		lines := map[int]int{}
		for _, r := range t.Rows {
			lines[r.At.Line]++
		}
		for _, r := range t.Rows {
			if lines[r.At.Line] > 2 {
				continue // a macro of a generated part
			}
			note(r.At.File, r.Runs, r.At.String()+" "+t.Name+" "+r.Action)
		}
	}
	return reached
}

// checkCoverage wants 95 % over the forms of a twin together: some of its text is for some of them only. The last form has run.
func checkCoverage(t *testing.T, tw *twin.Twin, sw *run.Switch) {
	forms, reached := tw.FormsOf(), covered(sw)
	missed := without(reached)
	for n := len(forms) - 2; n >= 0 && len(missed)*20 > len(reached); n-- {
		for what, yes := range covered(record(t, tw, forms[n]).sw) {
			reached[what] = reached[what] || yes
		}
		missed = without(reached)
	}
	t.Logf("%d of %d branches and entries reached; not: %q", len(reached)-len(missed), len(reached), missed)
	if len(missed)*20 > len(reached) {
		t.Errorf("%d of %d branches and entries were not reached, more than 5 %%", len(missed), len(reached))
	}
}

// without lists what was not reached.
func without(reached map[string]bool) (missed []string) {
	for what, yes := range reached {
		if !yes {
			missed = append(missed, what)
		}
	}
	slices.Sort(missed)
	return missed
}
