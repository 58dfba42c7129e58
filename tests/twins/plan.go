package twins

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/dump"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// read is a twin's program in a form and for a chip.
type read struct {
	twin, form string
	target     run.Target
}

// programs and plans are read and made once; plans are those of the last forms, as `xdpmon p4 plan` writes them.
var (
	programs = map[read]*syntax.Program{}
	plans    = map[read][]byte{}
)

func programOf(tw *twin.Twin, form twin.Form, target run.Target) (*syntax.Program, error) {
	key := read{tw.Name, form.Name, target}
	if p := programs[key]; p != nil {
		return p, nil
	}
	files, err := tw.Text(form)
	if err != nil {
		return nil, err
	}
	p, err := run.Read(files, tw.Name+"/top.p4", target, form.Define)
	if err != nil {
		return nil, fmt.Errorf("read twin %s: %w", tw.Name, err)
	}
	programs[key] = p
	return p, nil
}

// build a switch that the twin's folder makes ready.
func build(tw *twin.Twin, form twin.Form, target run.Target) (*run.Switch, error) {
	program, err := programOf(tw, form, target)
	if err != nil {
		return nil, err
	}
	sw, err := run.New(program, target)
	if err != nil {
		return nil, fmt.Errorf("build twin %s: %w", tw.Name, err)
	}
	return sw, tw.Ready(sw, target, form)
}

// planOf the last form, as a reader of its JSON has it.
func planOf(tw *twin.Twin, target run.Target) (*dump.Plan, error) {
	key := read{twin: tw.Name, target: target}
	if plans[key] == nil {
		sw, err := build(tw, tw.LastForm(), target)
		if err != nil {
			return nil, err
		}
		plan, err := dump.PlanOf(tw, sw, target)
		if err != nil {
			return nil, err
		}
		if plans[key], err = json.Marshal(plan); err != nil {
			return nil, err
		}
	}
	plan := &dump.Plan{}
	return plan, json.Unmarshal(plans[key], plan)
}

// planned is a fresh switch of the last form that nothing has filled but its plan, or what change makes of it.
func planned(p *pair, target run.Target, change func(p *dump.Plan)) (*run.Switch, plane, error) {
	plan, err := planOf(p.twin, target)
	if err != nil {
		return nil, nil, err
	}
	if change != nil {
		change(plan)
	}
	program, err := programOf(p.twin, p.twin.LastForm(), target)
	if err != nil {
		return nil, nil, err
	}
	sw, err := run.New(program, target)
	if err != nil {
		return nil, nil, err
	}
	client, err := dump.NewClient(plan, sw, p.operator(sw))
	return sw, client, err
}

// operator chooses ports, and a coordinator's messages.
func (p *pair) operator(sw *run.Switch) dump.Operator {
	o := dump.Operator{Port: 65, CPU: twin.CPUPort, Filter: p.twin.Filter}
	o.Tables = map[string]func(*run.Table) error{"Ingress.forward.forward": forwardBy, "Egress.conquest.ports": watch}
	if p.host.messages != nil {
		o.Tables["Ingress.carpe.groups"] = func(*run.Table) error { return p.host.messages(sw) }
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
