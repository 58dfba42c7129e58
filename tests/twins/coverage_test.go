package twins

import (
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// coverage of a twin: the branches, actions, parser states and table entries of its committed text, and whether packets reached
// them in any form. Entries of generated tables are identified by their content, since the forms of the test have them at other positions.
type coverage map[string]bool

func (c coverage) add(sw *run.Switch, tw *twin.Twin, form twin.Form) {
	note := func(file, what string, runs uint64) {
		generated := strings.HasSuffix(file, "/tables.p4")
		if _, known := c[what]; known || !(form.Generated && generated) && !strings.HasSuffix(file, "/switch.p4") {
			c[what] = c[what] || runs > 0
		}
	}
	for _, s := range sw.Spots {
		if strings.HasSuffix(s.File, "/tables.p4") {
			note(s.File, s.File+" "+s.Name, s.Runs)
		} else {
			note(s.File, s.Pos.String()+" "+s.Name, s.Runs)
		}
	}
	for _, t := range sw.Tables {
		if slices.ContainsFunc(tw.Sampled, func(end string) bool { return strings.HasSuffix(t.Name, end) }) {
			continue
		}
		for _, r := range t.Rows {
			note(r.At.File, EntryOf(t, r), r.Runs)
		}
	}
}

// missed lists what was not reached, but for what cannot be.
func (c coverage) missed(tw *twin.Twin) (missed []string, all int) {
	for what, yes := range c {
		if slices.ContainsFunc(tw.Unreachable, func(part string) bool { return strings.Contains(what, part) }) {
			if yes {
				missed = append(missed, what+", which is declared out of reach")
			}
			continue
		}
		all++
		if !yes {
			missed = append(missed, what)
		}
	}
	slices.Sort(missed)
	return missed, all
}

// checkCoverage requires 95 %. The last form was recorded.
func checkCoverage(t *testing.T, tw *twin.Twin, last *pair) {
	c, forms := coverage{}, tw.FormsOf()
	order := slices.Clone(forms) // the last form of the committed text, the generated forms, the others
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b twin.Form) int { return number(b.Generated) - number(a.Generated) })
	if first := slices.IndexFunc(order, func(f twin.Form) bool { return !f.Generated }); first > 0 {
		order = slices.Concat(order[first:first+1], order[:first], order[first+1:])
	}
	for n, form := range order {
		p := last
		if form.Name != p.form.Name {
			p = record(t, tw, form)
		}
		c.add(p.sw, tw, form)
		if missed, all := c.missed(tw); n > 0 && len(missed)*20 <= all {
			break
		}
	}
	missed, all := c.missed(tw)
	t.Logf("%d of %d branches and entries reached, %.1f %%; not: %q", all-len(missed), all, 100-100*float64(len(missed))/float64(all), missed)
	if len(missed)*20 > all {
		t.Errorf("%d of %d branches and entries were not reached, more than 5 %%", len(missed), all)
	}
}
