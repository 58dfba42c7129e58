package structure

import (
	"fmt"

	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// ListOf is the list of a twin's intended differences from its bytecode.
func ListOf(t *twin.Twin) (*List, error) { return ReadList(p4.Sources, t.Name) }

// OfTwin is the structure of a twin's program in a form.
func OfTwin(t *twin.Twin, target run.Target, form twin.Form) ([]Touch, error) {
	files, err := t.Text(form)
	if err != nil {
		return nil, err
	}
	program, err := run.Read(files, t.Name+"/top.p4", target, form.Define)
	if err != nil {
		return nil, fmt.Errorf("read twin %s: %w", t.Name, err)
	}
	touches, err := Of(program, WindowOf(t))
	if err != nil {
		return nil, fmt.Errorf("structure of twin %s: %w", t.Name, err)
	}
	return touches, nil
}

// WindowOf is the table that selects the bank that packets count into; "" if the twin has none.
func WindowOf(t *twin.Twin) string {
	if t.Window == nil {
		return ""
	}
	return t.Window.Table
}

// OfHost is the structure of a twin's bytecode with the parameters of a form, and with the switch's hashes.
func OfHost(t *twin.Twin, form twin.Form) ([]pisa.Touch, error) {
	d, err := algo.Lookup(t.Algorithm)
	if err != nil {
		return nil, err
	}
	v, err := t.Values(form)
	if err != nil {
		return nil, err
	}
	objects, _, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Hash: algo.HashCRC}, true)
	if err != nil {
		return nil, err
	}
	spec, err := objects[0].Whole()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"hash_crc", "coin_seeded"} {
		if spec.Variables[name] == nil {
			continue
		}
		if err := maps.SetConstant(spec, name, true); err != nil {
			return nil, err
		}
	}
	touches, err := pisa.Structure(spec)
	if err != nil {
		return nil, fmt.Errorf("structure of %s: %w", t.Algorithm, err)
	}
	return touches, nil
}
