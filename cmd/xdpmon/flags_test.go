package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
)

// spelled is the form of a flag: its shorthand, and the name of its value.
type spelled struct{ shorthand, value string }

// flagsOf collects how every flag of a command and those below it is written.
func flagsOf(cmd *cobra.Command, into map[string]map[spelled][]string) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, _ := pflag.UnquoteUsage(f)
		if into[f.Name] == nil {
			into[f.Name] = map[spelled][]string{}
		}
		s := spelled{f.Shorthand, value}
		into[f.Name][s] = append(into[f.Name][s], cmd.CommandPath())
	})
	for _, c := range cmd.Commands() {
		flagsOf(c, into)
	}
}

// A flag means the same in all verbs: one letter, one kind of value; and no value is a bare "string", which has no meaning. Only --output has fewer values
// where nothing is measured, and writes text to terminals and pipes alike.
func TestFlagsAreSpelledAlike(t *testing.T) {
	w := newWorld()
	all := map[string]map[spelled][]string{}
	flagsOf(newRoot(&w.environment), all)
	output := all["output"]
	delete(all, "output")
	if len(all["algo"]) != 2 || len(all["algo"][spelled{"a", "NAME,..."}]) != 3 || len(all["algo"][spelled{"a", "NAME"}]) != 1 {
		t.Errorf("--algo is %v: history asks for one", all["algo"])
	}
	delete(all, "algo")
	for name, forms := range all {
		if len(forms) != 1 {
			t.Errorf("--%s is %v", name, forms)
		}
		for s := range forms {
			if s.value == "string" {
				t.Errorf("--%s takes a string: name its value", name)
			}
		}
	}
	if len(output) != 2 || len(output[spelled{"", "auto|table|json"}]) < 4 || len(output[spelled{"", "table|json"}]) < 6 {
		t.Errorf("--output is %v", output)
	}
	if len(all) < 30 {
		t.Errorf("there are only %d flags", len(all))
	}
}

// --json and merge --out are accepted for one version, and name their replacement.
func TestOldFlags(t *testing.T) {
	w := newWorld()
	if code := w.run("version", "--json"); code != cli.ExitDone || !strings.HasPrefix(w.out.String(), "{") {
		t.Errorf("%d: %s", code, w.out.String())
	}
	contains(t, w.err.String(), "--json will be removed in version 0.2.0: use --output json")
	w = newWorld()
	if code := w.run("version"); code != cli.ExitDone || strings.HasPrefix(w.out.String(), "{") || w.err.String() != "" {
		t.Errorf("%d: %s, %s", code, w.out.String(), w.err.String())
	}
}
