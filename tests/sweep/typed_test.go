package sweep

import (
	"reflect"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// setups are those of a live run, a replay, a replay with the switch's hashes, and the switch.
var setups = []algo.Setup{{WindowNS: 1e9}, {Replay: true}, {Replay: true, Hash: algo.HashCRC, WindowNS: 1e9}, algo.Switch()}

// choices are sets of parameters: the defaults, and each value of an enumeration, each switch and each bound by itself.
func choices(d *algo.Descriptor) []map[string]string {
	sets := []map[string]string{nil}
	for _, p := range d.Params {
		texts := p.Choices
		switch {
		case p.Type == algo.Bool:
			texts = []string{"true", "false"}
		case p.Min != "" && p.Max != "":
			texts = []string{p.Min, p.Max}
		}
		for _, text := range texts {
			sets = append(sets, map[string]string{p.Key: text})
		}
	}
	return sets
}

// TestTypedAccess configures every algorithm with the defaults and with each choice, so that a parameter that is asked for by a name or type
// it was not declared with panics here. An algorithm may reject a value, but not the defaults.
func TestTypedAccess(t *testing.T) {
	for _, d := range algo.All() {
		t.Run(d.Name, func(t *testing.T) {
			spec, err := d.Spec()
			if err != nil {
				t.Fatal(err)
			}
			outline := loader.Outline(spec)
			for _, set := range choices(d) {
				v, err := algo.NewValues(d.Name, d.Params, set)
				if err != nil {
					t.Fatal(err)
				}
				access(t, d, outline, v, set)
			}
		})
	}
}

func access(t *testing.T, d *algo.Descriptor, spec *ebpf.CollectionSpec, v algo.Values, set map[string]string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s with %v: %v", d.Name, set, p)
		}
	}()
	for n, setup := range setups {
		of, err := d.Configure(v, setup)
		if err != nil {
			if set == nil && n == 0 {
				t.Errorf("%s refuses its defaults: %v", d.Name, err)
			}
			continue
		}
		if again, err := d.Configure(v, setup); err != nil || !reflect.DeepEqual(of.Config, again.Config) {
			t.Errorf("%s with %v: read again, the configuration is another: an agent would restart it at every reload (%v)", d.Name, set, err)
		}
		use(t, of, setup)
		i, err := of.New(algo.Env{})
		if err != nil { // a value that only this host can judge
			if set == nil && n == 0 {
				t.Errorf("%s refuses its defaults: %v", d.Name, err)
			}
			continue
		}
		if err := i.Configure(spec.Copy()); err != nil { // a constant of another object, or of another width
			t.Errorf("%s with %v: %v", d.Name, set, err)
		}
	}
	_, _ = d.Plan(v, d.PlanDefaults())
	_, _ = d.P4(v)
	_, _ = d.P4Rules(v)
}

// use asks a configuration for all that needs no kernel.
func use(t *testing.T, of algo.Selected, setup algo.Setup) {
	t.Helper()
	s := &snapshot.Snapshot{Head: of.Head(1)}
	if _, err := of.Config.Report(s); err == nil {
		t.Errorf("%s with %v reports a snapshot without words", of.Descriptor.Name, of.Values.Map())
	}
	if c, ok := of.Config.(algo.CoordinatorProvider); ok {
		_, _ = c.Coordinate(algo.Env{Setup: setup})
	}
	if c, ok := of.Config.(algo.LossReporter); ok {
		_, _ = c.Losses(s)
	}
	if c, ok := of.Config.(algo.Merger); ok {
		if _, err := c.Merge(s, s); err == nil {
			t.Errorf("%s merges snapshots without words", of.Descriptor.Name)
		}
	}
}
