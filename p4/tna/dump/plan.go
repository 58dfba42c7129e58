package dump

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Plan is the control-plane side of a twin: what to fill before the first packet, what to change to end a window, what to read
// and to reset then. Names are those of bfrt after "pipe.".
type Plan struct {
	Schema    string         `json:"schema"`
	Twin      string         `json:"twin"`
	Fill      []twin.Fill    `json:"fill"`
	Flip      *twin.Flip     `json:"flip,omitempty"` // set the default action to the other bank, then read the closed one
	Registers []RegisterPlan `json:"registers"`
	Counters  []CounterPlan  `json:"counters"`
	Digests   bool           `json:"digests"`         // records are also sent as digests
	Learn     []string       `json:"learn,omitempty"` // of these
}

// RegisterPlan is one register to read. Banked: the closed half is read and reset to initial, from element bank*entries/2 on; if a bank is given, all
// of it is that bank's. Otherwise it is read unchanged, and never reset. Freed: elements other than those equal at the end of the window before are set to 0.
type RegisterPlan struct {
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Width   int      `json:"width"`
	Words   int      `json:"words"`
	Entries int      `json:"entries"`
	Banked  bool     `json:"banked"`
	Bank    *int     `json:"bank,omitempty"`
	Freed   bool     `json:"freed,omitempty"`
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

// ErrNoObject is wrapped if a plan names an object that the program does not have.
var ErrNoObject = errors.New("the program has no such object")

// PlanOf a twin as it is built for a chip.
func PlanOf(t *twin.Twin, sw *run.Switch, target run.Target) (*Plan, error) {
	d, err := algo.Lookup(t.Algorithm)
	if err != nil {
		return nil, err
	}
	spec, err := d.Spec()
	if err != nil {
		return nil, err
	}
	p := &Plan{Schema: PlanSchema, Twin: t.Name, Fill: slices.Concat(common(sw, target), t.Fill), Digests: t.Reports != nil && t.Reports.Record != nil}
	for i := range p.Fill {
		if err := describe(&p.Fill[i], sw); err != nil {
			return nil, fmt.Errorf("plan %s: %w", t.Name, err)
		}
	}
	for _, name := range sw.Learns {
		p.Learn = append(p.Learn, "IngressDeparser."+name)
	}
	if t.Window != nil {
		flip := *t.Window
		flip.Table = sw.Full(flip.Table)
		p.Flip = &flip
	}
	for _, r := range sw.Registers {
		ms := maps.MapOf(spec, r.Name)
		one := RegisterPlan{Name: r.Name, Path: sw.Full(r.Path), Width: r.Width, Words: r.Words,
			Entries: r.Entries, Banked: ms != nil && slices.Contains(ms.Tags, maps.TagBanked), Freed: slices.Contains(t.Freed, r.Name), Initial: r.Initial}
		if one.Banked {
			one.Bank = bankOf(sw, r)
		}
		p.Registers = append(p.Registers, one)
	}
	for _, table := range sw.Tables {
		if table.HasCounters {
			p.Counters = append(p.Counters, CounterPlan{Table: table.Name, Path: sw.Full(table.Name), Actions: table.Actions()})
		}
	}
	return p, nil
}

// bankOf is the bank of one of two registers of a name, on a chip where both do not fit into a stage; nil: it has both banks.
func bankOf(sw *run.Switch, r *run.Register) *int {
	n, before := 0, 0
	for _, other := range sw.Registers {
		if other == r {
			before = n
		}
		if other.Name == r.Name {
			n++
		}
	}
	if n != 2 {
		return nil
	}
	return &before
}

// tableOf is the table of a full name in a plan.
func tableOf(sw *run.Switch, object string) (*run.Table, error) {
	_, name, _ := strings.Cut(object, ".")
	t := sw.Table(name)
	if t == nil || sw.Full(name) != object {
		return nil, fmt.Errorf("table %s: %w", object, ErrNoObject)
	}
	return t, nil
}

// describe a table's keys and actions.
func describe(f *twin.Fill, sw *run.Switch) error {
	if f.Kind != twin.FillTable {
		return nil
	}
	t, err := tableOf(sw, f.Object)
	if err != nil {
		return err
	}
	for _, k := range t.Keys {
		f.Keys = append(f.Keys, twin.Key{Name: k.Name, Match: k.Kind, Width: k.Width})
	}
	for _, name := range t.Actions() {
		widths, err := t.Action(name)
		if err != nil {
			return err
		}
		f.Actions = append(f.Actions, twin.Action{Name: name, Widths: append([]int{}, widths...)})
	}
	return nil
}

// common is the part of all twins: forwarding; and, if packets pass twice, the sessions of their clones.
func common(sw *run.Switch, target run.Target) []twin.Fill {
	fill := []twin.Fill{{Kind: twin.FillTable, Object: "Ingress.forward.forward", Optional: true,
		What: "ingress port and destination address to egress port; without an entry a packet is dropped after it was measured, as on a tap"}}
	if slices.Contains(sw.Controls, "SecondPass") {
		for pipe := range twin.Pipes {
			s := &twin.Session{Number: uint64(pipe + 1), Port: twin.SecondPort(target, pipe), Bytes: twin.CloneBytes, Loops: true}
			fill = append(fill, twin.Fill{Kind: twin.FillSession, Object: fmt.Sprintf("mirror session %d", s.Number), Session: s,
				What: fmt.Sprintf("second passes of pipe %d, to its port that loops back", pipe)})
		}
	}
	for _, m := range sw.Meters {
		fill = append(fill, twin.Fill{Kind: twin.FillMeter, Object: sw.Full(m.Name), Optional: true, What: "second passes a second that are allowed: without a rate every one is"})
	}
	return fill
}
