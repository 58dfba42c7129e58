package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/completion"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/windows"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// selection holds the values of --algo, --set and the flags that all algorithms share.
type selection struct {
	algorithms []string
	set        []string
	queries    []string
	hash       *cli.Enum[algo.Hash]
	decap      bool
	seed       uint64
	windows    windows.Lengths
	interfaces int // of one instance; 0: not known
}

// addSelection adds the flags; window is the default length of a window.
func addSelection(cmd *cobra.Command, window time.Duration) *selection {
	s := addShared(cmd, window)
	cmd.Flags().StringSliceVarP(&s.algorithms, "algo", "a", nil, "algorithms `NAME,...` in the order in which packets meet them (xdpmon algos lists them)")
	cli.Complete(cmd, "algo", completion.Algorithms)
	return s
}

// addShared adds all flags but --algo.
func addShared(cmd *cobra.Command, window time.Duration) *selection {
	s := &selection{}
	f := cmd.Flags()
	addSet(cmd, &s.set)
	s.windows.All = window
	f.Var(&s.windows, "window", "length of a window, 100ms to 24h"+orWhole(window)+"; NAME=LENGTH is that of an algorithm, a multiple of the shortest: 10s,lean=1m")
	f.Uint64Var(&s.seed, "seed", 0, "seed of the hashes; hosts whose results are merged share it (default: random live, 1 in a replay)")
	f.BoolVar(&s.decap, "decap", false, "look into VXLAN, GENEVE, GRE, IPIP and 6in4, one level")
	addQueries(cmd, s)
	s.hash = cli.AddEnum(cmd, "hash", algo.HashFast, "hash functions: fast, or crc as the P4 twin on a switch has them", algo.Hashes...)
	return s
}

// addSet adds --set, which means the same in all verbs.
func addSet(cmd *cobra.Command, into *[]string) {
	cmd.Flags().StringArrayVar(into, "set", nil, "parameter of an algorithm, `NAME.KEY=VALUE`; repeatable (xdpmon algos NAME lists them)")
	cli.Complete(cmd, "set", completion.Set)
}

// orWhole ends the help of --window where one window until the end is possible: where it is the default.
func orWhole(window time.Duration) string {
	if window == 0 {
		return "; 0: one window until the end"
	}
	return ""
}

// resolve checks everything that can be checked before anything is loaded.
func (s *selection) resolve(replay bool) ([]session.Selected, error) {
	s.useQueries()
	if len(s.algorithms) == 0 {
		return nil, cli.UsageError("--algo is missing: choose one or more of %s", orNone(algo.Names()))
	}
	values, err := parseSet(s.set, s.algorithms)
	if err != nil {
		return nil, err
	}
	var all []session.Selected
	for _, name := range s.algorithms {
		one, err := s.resolveOne(name, values[name], replay)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o session.Selected) bool { return o.Descriptor == one.Descriptor }) {
			return nil, cli.UsageError("--algo names %s twice", name)
		}
		all = append(all, one)
	}
	return all, s.windows.Check(all)
}

func (s *selection) resolveOne(name string, set map[string]string, replay bool) (session.Selected, error) {
	d, err := lookup(name)
	if err != nil {
		return session.Selected{}, err
	}
	v, err := valuesOf(d, set)
	if err != nil {
		return session.Selected{}, err
	}
	one, err := d.Configure(v, algo.Setup{Replay: replay, Hash: s.hash.Value, WindowNS: s.windows.Of(name)})
	one.Window = int64(s.windows.Own[name])
	if err == nil {
		_, err = one.New(algo.Env{Seed: s.seed, Interfaces: s.interfaces}) // parameters that depend on this host
	}
	if err != nil {
		return session.Selected{}, cli.AsUsage(err)
	}
	return one, nil
}

// lookup is algo.Lookup with a suggestion.
func lookup(name string) (*algo.Descriptor, error) {
	d, err := algo.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, didYouMean(name, algo.Names()))
	}
	return d, nil
}

// valuesOf is algo.NewValues with a suggestion for a misspelt key.
func valuesOf(d *algo.Descriptor, set map[string]string) (algo.Values, error) {
	keys := paramKeys(d)
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err == nil {
		return v, nil
	}
	for key := range set {
		if !slices.Contains(keys, key) {
			return v, cli.UsageError("set %s.%s: no such parameter: %s has %s%s", d.Name, key, d.Name, orNone(keys), didYouMean(key, keys))
		}
	}
	return v, cli.AsUsage(err)
}

func paramKeys(d *algo.Descriptor) []string {
	var keys []string
	for _, p := range d.Params {
		keys = append(keys, p.Key)
	}
	return keys
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// parseSet sorts NAME.KEY=VALUE by name. Only selected algorithms can be meant.
func parseSet(set, selected []string) (map[string]map[string]string, error) {
	values := map[string]map[string]string{}
	for _, text := range set {
		path, value, hasValue := strings.Cut(text, "=")
		name, key, hasKey := strings.Cut(path, ".")
		if !hasValue || !hasKey || name == "" || key == "" {
			return nil, cli.UsageError("--set %q: write NAME.KEY=VALUE, for example fridge.match=dns", text)
		}
		if !slices.Contains(selected, name) {
			return nil, cli.UsageError("--set %q: %s is not among the algorithms of this run (%s)%s", text, name, orNone(selected), didYouMean(name, selected))
		}
		if values[name] == nil {
			values[name] = map[string]string{}
		}
		if _, twice := values[name][key]; twice {
			return nil, cli.UsageError("--set gives %s twice", path)
		}
		values[name][key] = value
	}
	return values, nil
}

// config is the part of a session that all runs share.
func (s *selection) config(selected []session.Selected) session.Config {
	return session.Config{Algorithms: selected, Window: s.windows.All, Seed: s.seed, Hash: s.hash.Value, Decap: s.decap}
}

// describe is the part of a run's description that all runs share.
func (s *selection) describe(env *environment, command string, selected []session.Selected) report.Run {
	r := report.Run{Version: version(), Command: command, Kernel: env.kernel, Seed: s.seed, Hash: s.hash.String()}
	session.Describe(&r, selected, s.windows.All)
	return r
}
