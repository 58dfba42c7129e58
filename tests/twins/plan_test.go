package twins

import (
	"encoding/json"
	"fmt"
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
// bytecode does. (Tofino 2's text is run by its plan in TestModel.)
func TestPlansAreExecuted(t *testing.T) {
	testutil.NeedRoot(t)
	for _, tw := range twin.All() {
		t.Run(tw.Name, func(t *testing.T) {
			if err := execute(t, tw, run.Tofino1, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPlansLackNothing: a plan that lacks something that the switch does not measure without is found.
func TestPlansLackNothing(t *testing.T) {
	testutil.NeedRoot(t)
	for _, tw := range twin.All() {
		t.Run(tw.Name, func(t *testing.T) {
			plan := planOf(t, tw, run.Tofino1)
			for i, f := range plan.Fill {
				if f.Optional {
					continue
				}
				lacking := func(p *dump.Plan) { p.Fill = slices.Delete(slices.Clone(p.Fill), i, i+1) }
				if execute(t, tw, run.Tofino1, lacking) == nil {
					t.Errorf("without %s the switch answers as the bytecode does", f.Object)
				}
			}
			if plan.Flip != nil && execute(t, tw, run.Tofino1, func(p *dump.Plan) { p.Flip = nil }) == nil {
				t.Error("without a flip the switch answers as the bytecode does")
			}
			listed(t, tw, plan)
		})
	}
}

// planOf the last form.
func planOf(t *testing.T, tw *twin.Twin, target run.Target) *dump.Plan {
	t.Helper()
	sw, err := tw.Build(target, tw.LastForm())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := dump.PlanOf(tw, sw, target)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// execute a plan, or what change makes of it, as a reader of its JSON does, and play what the bytecode did.
func execute(t *testing.T, tw *twin.Twin, target run.Target, change func(p *dump.Plan)) error {
	form := tw.LastForm()
	p := record(t, tw, form)
	text, err := json.Marshal(planOf(t, tw, target))
	if err != nil {
		t.Fatal(err)
	}
	plan := &dump.Plan{}
	if err := json.Unmarshal(text, plan); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(plan)
	}
	files, err := tw.Text(form)
	if err != nil {
		t.Fatal(err)
	}
	program, err := run.Read(files, tw.Name+"/top.p4", target, form.Define)
	if err != nil {
		t.Fatal(err)
	}
	sw, err := run.New(program, target)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dump.NewClient(plan, sw, p.operator(sw))
	if err != nil {
		return err
	}
	return p.playWith(sw, client)
}

// operator chooses ports, and what a coordinator says.
func (p *pair) operator(sw *run.Switch) dump.Operator {
	o := dump.Operator{Port: 65, CPU: twin.CPUPort, Filter: p.twin.Filter}
	o.Tables = map[string]func(*run.Table) error{"Ingress.forward.forward": forwardBy, "Egress.conquest.ports": watch}
	if p.host.told != nil {
		o.Tables["Ingress.carpe.groups"] = func(*run.Table) error { return p.host.told(sw) }
	}
	o.Rules = func(command string) ([]byte, error) {
		name, ok := strings.CutPrefix(command, "xdpmon p4 rules ")
		d, err := algo.Lookup(name)
		if !ok || err != nil || !algo.Implements[algo.TwinRules](d) {
			return nil, fmt.Errorf("%s: there is no such command: %w", command, err)
		}
		return d.P4Rules(p.values)
	}
	return o
}

// watch the ports that the test's packets leave by.
func watch(table *run.Table) error {
	if err := table.SetDefault("ignore"); err != nil {
		return err
	}
	ports := []uint64{forwarded, odd}
	for pipe := range uint64(twin.Pipes) {
		ports = append(ports, portOf(pipe))
	}
	for _, port := range ports {
		if err := table.Add([]run.Match{{Value: port, Mask: 1<<9 - 1}}, "watch"); err != nil {
			return err
		}
	}
	return nil
}

// listed: all that a control plane may write is in the plan, or in what its commands write.
func listed(t *testing.T, tw *twin.Twin, plan *dump.Plan) {
	sw, err := tw.Build(run.Tofino1, tw.LastForm())
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
