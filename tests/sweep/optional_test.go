package sweep

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// has reports whether a value has an interface.
func has[I any](v any) bool { _, ok := v.(I); return ok }

// The optional interfaces, by what has them.
var (
	ofConfigs = map[string]func(any) bool{"Merger": has[algo.Merger], "MergeChecker": has[algo.MergeChecker], "Planner": has[algo.Planner], "Twin": has[algo.Twin], "TwinRules": has[algo.TwinRules],
		"LossReporter": has[algo.LossReporter], "CoordinatorProvider": has[algo.CoordinatorProvider]}
	ofInstances = map[string]func(any) bool{"OracleProvider": has[algo.OracleProvider], "Controller": has[algo.Controller], "ReplayController": has[algo.ReplayController],
		"Messenger": has[algo.Messenger], "Enforcer": has[algo.Enforcer], "Steerer": has[algo.Steerer], "WindowOpener": has[algo.WindowOpener], "WindowCloser": has[algo.WindowCloser],
		"Recirculator": has[algo.Recirculator], "RecirculationDelayer": has[algo.RecirculationDelayer]}
	ofCoordinators = map[string]func(any) bool{"Checkpointer": has[algo.Checkpointer]}
)

const optionalFile = "../../userspace/algo/optional.go"

// row of the table: interface, its owner, and the algorithms that implement it.
var row = regexp.MustCompile(`(?m)^(//\t(\w+) +[A-Z]\w+ +)(\S.*)$`)

// TestOptionalInterfaces: the table of userspace/algo/optional.go lists the implementations, and every interface of the file is in it. With -update the
// table is rewritten.
func TestOptionalInterfaces(t *testing.T) {
	text, err := os.ReadFile(optionalFile)
	if err != nil {
		t.Fatal(err)
	}
	want := implementers(t)
	if *update {
		text = row.ReplaceAllFunc(text, func(line []byte) []byte {
			m := row.FindSubmatch(line)
			return append(slices.Clone(m[1]), strings.Join(want[string(m[2])], ", ")...)
		})
		if err := os.WriteFile(optionalFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		got[m[2]] = strings.Split(m[3], ", ")
	}
	for _, all := range []map[string]func(any) bool{ofConfigs, ofInstances, ofCoordinators} {
		for name := range all {
			if !slices.Equal(got[name], want[name]) {
				t.Errorf("%s is implemented by %v, the table has %v (make answers writes it)", name, want[name], got[name])
			}
			delete(got, name)
		}
	}
	for name := range got {
		t.Errorf("the table has %s, which this test does not check", name)
	}
}

// implementers asks every algorithm what it has.
func implementers(t *testing.T) map[string][]string {
	t.Helper()
	want := map[string][]string{}
	for _, d := range algo.All() {
		note(want, ofConfigs, d.Name, d.Config.Zero())
		of, err := d.Select(nil, setups[0])
		if err != nil {
			t.Fatal(err)
		}
		i, err := of.New(algo.Env{})
		if err != nil {
			t.Fatal(err)
		}
		note(want, ofInstances, d.Name, i)
		if p, ok := of.Config.(algo.CoordinatorProvider); ok {
			c, err := p.Coordinate(algo.Env{Setup: setups[0]})
			if err != nil {
				t.Fatal(err)
			}
			note(want, ofCoordinators, d.Name, c)
		}
	}
	return want
}

func note(to map[string][]string, interfaces map[string]func(any) bool, algorithm string, v any) {
	for name, has := range interfaces {
		if has(v) {
			to[name] = append(to[name], algorithm)
		}
	}
}
