package dump

import (
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"

	"slices"
)

// Plan is the control-plane side of a twin: what to fill before the first packet, what to change to end a window, what to read
// and to set back then. Names are those that bfrt has behind "pipe.".
type Plan struct {
	Schema    string         `json:"schema"`
	Twin      string         `json:"twin"`
	Fill      []twin.Fill    `json:"fill"`
	Flip      *twin.Flip     `json:"flip,omitempty"` // set the default action to the other bank, then read the closed one
	Registers []RegisterPlan `json:"registers"`
	Counters  []CounterPlan  `json:"counters"`
	Digests   bool           `json:"digests"` // records come as digests, too
}

// RegisterPlan is one register to read. Banked: the closed half is read and set back to initial, elements bank*entries/2 on;
// else it is read as it is, and never set back.
type RegisterPlan struct {
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Width   int      `json:"width"`
	Words   int      `json:"words"`
	Entries int      `json:"entries"`
	Banked  bool     `json:"banked"`
	Initial []uint64 `json:"initial"`
}

// CounterPlan is a table with direct counters; packets are added up by action.
type CounterPlan struct {
	Table   string   `json:"table"`
	Path    string   `json:"path"`
	Actions []string `json:"actions"`
}

// PlanSchema of a plan.
const PlanSchema = "xdpmon.plan/1"

// PlanOf a twin as it is built.
func PlanOf(t *twin.Twin, sw *run.Switch) (*Plan, error) {
	d, err := algo.Lookup(t.Algorithm)
	if err != nil {
		return nil, err
	}
	spec, err := d.Spec()
	if err != nil {
		return nil, err
	}
	p := &Plan{Schema: PlanSchema, Twin: t.Name, Fill: slices.Concat(common(sw), t.Fill), Digests: t.Reports != nil && t.Reports.Record != nil}
	if t.Window != nil {
		flip := *t.Window
		flip.Table = sw.Full(flip.Table)
		p.Flip = &flip
	}
	for _, r := range sw.Registers {
		ms, ok := spec.Maps[r.Name]
		p.Registers = append(p.Registers, RegisterPlan{Name: r.Name, Path: sw.Full(r.Path), Width: r.Width, Words: r.Words,
			Entries: r.Entries, Banked: ok && slices.Contains(ms.Tags, maps.TagBanked), Initial: r.Initial})
	}
	for _, table := range sw.Tables {
		if table.HasCounters {
			p.Counters = append(p.Counters, CounterPlan{Table: table.Name, Path: sw.Full(table.Name), Actions: table.Actions()})
		}
	}
	return p, nil
}

func ingress(name string) string { return "Ingress." + name }

// common to all twins: where packets go; and, where packets pass twice, the sessions of their clones.
func common(sw *run.Switch) []twin.Fill {
	fill := []twin.Fill{{Object: ingress("forward.forward"), What: "ingress port and destination address to egress port; without an entry a packet is dropped after it was measured, as on a tap"}}
	if slices.Contains(sw.Controls, "SecondPass") {
		fill = append(fill, twin.Fill{Object: "mirror sessions 1 to 4", What: "one a pipe, to that pipe's port which loops back (68 on Tofino 1, 6 on Tofino 2), 128 bytes"})
	}
	for _, m := range sw.Meters {
		fill = append(fill, twin.Fill{Object: ingress(m.Name), What: "second passes a second that are allowed: without a rate every one is"})
	}
	return fill
}
