package twins

import (
	"fmt"
	"maps"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// The model's traffic of every twin and form.
const (
	coins      = 7
	mixPackets = 12_000
	windows    = 3

	briefPackets = 3_000
)

// Recording is a run of the model's traffic through a twin in a form beside its bytecode; that of the last form can be played again.
type Recording struct{ *pair }

// Record runs a twin in a form together with its bytecode: the model's traffic, and the twin's driver as well for the committed text, for
// the last form, of which there is a tape and whose switch is filled by its plan, and for those that are made for it. The host is closed afterwards.
func Record(tw *twin.Twin, form twin.Form) (Recording, error) {
	return recordOf(tw, form, form.Name == tw.LastForm().Name)
}

// RecordToPlay is Record of any form, whose recording can be played again.
func RecordToPlay(tw *twin.Twin, form twin.Form) (Recording, error) { return recordOf(tw, form, true) }

func recordOf(tw *twin.Twin, form twin.Form, keep bool) (Recording, error) {
	last, fill := form.Name == tw.LastForm().Name, byHandOf
	if last {
		fill = byPlan
	}
	p, err := openPair(tw, form, run.Tofino1, fill)
	if err != nil {
		return Recording{}, err
	}
	defer p.host.close()
	driven := last || form.Driven || form.Name == ""
	if keep {
		p.tape = &tape{}
	}
	packets := mixPackets
	if form.Brief {
		packets = briefPackets
	}
	if err = p.feed(newMix(1, packets, mixFlows), packets/windows); err == nil && (driven || form.Drive != nil) {
		met, packets := maps.Clone(p.met), p.packets
		if driven {
			err = p.drive()
		} else {
			err = p.driveForm()
		}
		p.met, p.packets = met, packets // how often a difference occurs is stated for the model's traffic
	}
	if err != nil {
		return Recording{}, fmt.Errorf("%s: %w", form.Name, err)
	}
	return Recording{p}, nil
}

// Play sends a switch what the twin received and compares all that was compared. The first difference is the error.
func (r Recording) Play(sw *run.Switch) error { return r.play(sw) }

// Full sends a fresh switch whose saturating registers are full what the twin received: none of their words may change.
func (r Recording) Full(sw *run.Switch) error { return r.full(sw) }

// EntryOf names an entry of a table by its file, key and action.
func EntryOf(t *lang.Table, r *lang.Row) string {
	return fmt.Sprintf("%s %s %v %s%s", t.At.File, t.Name, r.Match, r.Action, argumentsOf(t.At.File, r.Args))
}

// argumentsOf an entry of a hand-written table; those of a generated one depend on parameters.
func argumentsOf(file string, args []uint64) string {
	if strings.HasSuffix(file, "/tables.p4") {
		return ""
	}
	return fmt.Sprintf(" %x", args)
}
