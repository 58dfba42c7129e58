package twins

import (
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/dump"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// TestPlansAreExecuted: a fresh switch that is filled, flipped and cleared by nothing but its plan, as `xdpmon p4 plan` writes it, answers as the
// bytecode does. The last form of every twin, and its driver, are compared so; the others, captures and planted bugs by switches that the
// twin's folder fills. (Tofino 2's text is run by its plan in TestModel.)
func TestPlansAreExecuted(t *testing.T) {
	testutil.NeedRoot(t)
	for _, tw := range twin.All() {
		t.Run(tw.Name, func(t *testing.T) {
			p := record(t, tw, tw.LastForm())
			if _, ok := p.plane.(*dump.Client); !ok || p.windows < windows || p.sw == nil {
				t.Errorf("%d windows were compared, ended by %T", p.windows, p.plane)
			}
		})
	}
}

// TestPlansLackNothing: a plan without an object that the switch needs for measuring is detected.
func TestPlansLackNothing(t *testing.T) {
	testutil.NeedRoot(t)
	for _, tw := range twin.All() {
		t.Run(tw.Name, func(t *testing.T) {
			plan, err := planOf(tw, run.Tofino1)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range plan.Fill {
				if f.Optional {
					continue
				}
				lacking := func(p *dump.Plan) { p.Fill = slices.Delete(slices.Clone(p.Fill), i, i+1) }
				if !lacks(t, tw, lacking) {
					t.Errorf("without %s the switch answers as the bytecode does", f.Object)
				}
			}
			if plan.Flip != nil && !lacks(t, tw, func(p *dump.Plan) { p.Flip = nil }) {
				t.Error("without a flip the switch answers as the bytecode does")
			}
			listed(t, tw, plan)
		})
	}
}

// lacks reports whether a switch filled by the changed plan answers differently from the bytecode.
func lacks(t *testing.T, tw *twin.Twin, change func(p *dump.Plan)) bool {
	t.Helper()
	return execute(record(t, tw, tw.LastForm()), run.Tofino1, change) != nil
}

// execute a plan, or what change makes of it, and play what the bytecode did.
func execute(p *pair, target run.Target, change func(p *dump.Plan)) error {
	sw, client, err := planned(p, target, change)
	if err != nil {
		return err
	}
	return p.playWith(sw, client)
}

// listed: all that a control plane may write is in the plan, or in what its commands write.
func listed(t *testing.T, tw *twin.Twin, plan *dump.Plan) {
	sw, err := build(tw, tw.LastForm(), run.Tofino1)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range plan.Fill {
		all.WriteString(f.Object + "\n")
		if f.Kind != twin.FillRules {
			continue
		}
		d, err := algo.Lookup(tw.Algorithm)
		if err != nil {
			t.Fatal(err)
		}
		v, err := tw.Values(twin.Form{}) // queries of other forms have other programs
		if err != nil {
			t.Fatal(err)
		}
		text, err := d.P4Rules(v)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	if plan.Flip != nil {
		all.WriteString(plan.Flip.Table)
	}
	for _, table := range sw.Tables {
		open := len(table.Keys) > 0 && !table.Fixed || !table.FixedDefault && table.Default != nil && len(table.Default.Args) > 0
		if open && !strings.Contains(all.String(), sw.Full(table.Name)) {
			t.Errorf("table %s: a control plane may write it, and the plan does not name it", sw.Full(table.Name))
		}
	}
	for _, m := range sw.Meters {
		if !strings.Contains(all.String(), sw.Full(m.Name)) {
			t.Errorf("meter %s is not in the plan", sw.Full(m.Name))
		}
	}
	for _, param := range sw.Params {
		if !strings.Contains(all.String(), param.Name) {
			t.Errorf("parameter %s is not in the plan", param.Name)
		}
	}
}
