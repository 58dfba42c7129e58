package twins

import (
	"maps"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// recordings are runs of the model's traffic by twin and form, which several tests look at.
var recordings = map[string]*pair{}

// record a twin in a form beside its bytecode, with no bug planted: the model's traffic, and what drives the twin as well for the text as it stands, for
// the last form, of which there is a tape, and for those that are made for it. The host is closed after it.
func record(t *testing.T, tw *twin.Twin, form twin.Form) *pair {
	t.Helper()
	key := tw.Name + "/" + form.Name
	if p := recordings[key]; p != nil {
		return p
	}
	p, err := openPair(tw, form, run.Tofino1, coins)
	if err != nil {
		t.Fatal(err)
	}
	defer p.host.close()
	last := form.Name == tw.LastForm().Name
	driven := last || form.Driven || form.Name == ""
	if last {
		p.tape = &tape{}
	}
	if err = p.feed(newMix(1, mixPackets, mixFlows), mixPackets/windows); err == nil && driven {
		met, packets := maps.Clone(p.met), p.packets
		err = p.drive()
		p.met, p.packets = met, packets // how often a difference is met is said of the model's traffic
	}
	if err != nil {
		t.Fatalf("%s: %v", form.Name, err)
	}
	recordings[key] = p
	return p
}

// modelRun is a twin in a form beside its bytecode. Tofino 2's text is run by its plan, gets what Tofino 1's got, and has to answer alike. The study runs every
// form by itself, for its packets are too many to be kept.
func modelRun(t *testing.T, tw *twin.Twin, form twin.Form, target run.Target, packets int) *pair {
	if study() {
		p, err := openPair(tw, form, target, coins)
		if err != nil {
			t.Fatal(err)
		}
		defer p.host.close()
		if err := p.feed(newMix(1, packets, mixFlows), min((packets+windows-1)/windows, ofTheStudy)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := record(t, tw, form)
	if target == run.Tofino1 {
		return p
	}
	if err := execute(t, tw, target, nil); err != nil {
		t.Fatal(err)
	}
	return p
}
