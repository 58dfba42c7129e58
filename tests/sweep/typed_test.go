package sweep

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// environments are those of a live run, a replay, a replay with the switch's hashes, and the switch.
var environments = []algo.Env{{CPUs: 1, WindowNS: 1e9}, {CPUs: 2, Replay: true}, {CPUs: 1, Replay: true, CRC: true, WindowNS: 1e9}, algo.Switch()}

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
// it was not declared with panics here. An algorithm may refuse a value; the defaults it must take.
func TestTypedAccess(t *testing.T) {
	for _, d := range algo.All() {
		t.Run(d.Name, func(t *testing.T) {
			for _, set := range choices(d) {
				v, err := algo.NewValues(d.Name, d.Params, set)
				if err != nil {
					t.Fatal(err)
				}
				access(t, d, v, set)
			}
		})
	}
}

func access(t *testing.T, d *algo.Descriptor, v algo.Values, set map[string]string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s with %v: %v", d.Name, set, p)
		}
	}()
	for n, env := range environments {
		_, err := d.New(v, env)
		if err != nil && set == nil && n == 0 {
			t.Errorf("%s refuses its defaults: %v", d.Name, err)
		}
		s := &snapshot.Snapshot{Head: d.Head(v, env)}
		if _, err := d.Report(v, env, s); err == nil {
			t.Errorf("%s with %v reports a snapshot without words", d.Name, set)
		}
		if d.Coordinate != nil {
			_, _ = d.Coordinate(v, env)
		}
		if d.Losses != nil {
			_, _ = d.Losses(v, env, s)
		}
	}
	if d.P4 != nil {
		_, _ = d.P4(v)
	}
	if d.P4Rules != nil {
		_, _ = d.P4Rules(v)
	}
}
