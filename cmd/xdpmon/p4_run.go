package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/windows"
	_ "github.com/xdpmon/xdpmon/p4/all"
	"github.com/xdpmon/xdpmon/p4/tna/dump"
	tna "github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	captures "github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const p4RunLong = `Runs captures through an algorithm's P4 twin: the program's own text, executed by a model of the Tofino architecture,
and reports the content of the switch's registers in the form in which replay reports the host's. Sizes and parameters are the twin's, or those of --set.

With --registers no capture is run: the registers of a real switch are read from a file (schema ` + dump.Schema + `; --dump writes
such files) and evaluated the same way. Registers of another program or size are refused.
It needs the privilege to make maps (root, or CAP_BPF); it loads and attaches nothing.`

const p4RunExample = `  xdpmon p4 run fridge capture.pcap
  xdpmon p4 run rtt-array capture.pcap --window 10s --output json
  xdpmon p4 run ahab capture.pcap --set ahab.config=slices.yaml
  xdpmon p4 run fridge --registers switch.json`

// p4RunOptions are the flags of p4 run.
type p4RunOptions struct {
	registers, dump string
	window          time.Duration
	seed            uint64
	set             []string
	target          *cli.Enum[string]
	output          *measureOptions
}

func newP4Run(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "run NAME [FILE...]", Short: "Run captures through a P4 twin, or evaluate a switch's registers", Long: p4RunLong, Example: p4RunExample,
		Args: cli.NeedArgs(1, -1, "the name of the algorithm and a capture"), ValidArgsFunction: completeName,
	}
	o := &p4RunOptions{}
	f := cmd.Flags()
	f.StringVar(&o.registers, "registers", "", "evaluate the registers in `FILE`, which a control plane has read out of a switch")
	f.StringVar(&o.dump, "dump", "", "write the last window's registers to `FILE`, as --registers reads them")
	f.DurationVar(&o.window, "window", 0, "length of a window; 0: one window until the end")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the coins, those of replay")
	addSet(cmd, &o.set)
	o.target = cli.AddEnum(cmd, "target", "tofino1", "chip that the program is read for: tofino1 or tofino2", "tofino1", "tofino2")
	o.output = addMeasure(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error { return p4Run(env, o, args[0], args[1:]) }
	return cmd
}

func newP4Plan(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan NAME", Short: "Write what a control plane fills, flips and reads, as JSON", Example: "  xdpmon p4 plan fridge",
		Args: cli.NeedArgs(1, 1, "the name of the algorithm"), ValidArgsFunction: completeName,
	}
	target := cli.AddEnum(cmd, "target", "tofino1", "chip that the program is read for: tofino1 or tofino2", "tofino1", "tofino2")
	var set []string
	addSet(cmd, &set)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		t, sw, _, err := p4Twin(args[0], target.Value, set)
		if err != nil {
			return err
		}
		plan, err := dump.PlanOf(t, sw, chip(target.Value))
		if err != nil {
			return err
		}
		out := json.NewEncoder(env.stdout)
		out.SetIndent("", "  ")
		return out.Encode(plan)
	}
	return cmd
}

// p4Twin builds the twin of an algorithm with its compiled-in or the given parameters.
func p4Twin(name, target string, set []string) (*twin.Twin, *tna.Switch, algo.Values, error) {
	d, err := lookup(name)
	if err != nil {
		return nil, nil, algo.Values{}, err
	}
	t, ok := twin.Of(d.Name)
	if !ok {
		return nil, nil, algo.Values{}, cli.UsageError("p4 %s: the model runs no twin of it", d.Name)
	}
	form, err := p4Form(t, d, set)
	if err != nil {
		return nil, nil, algo.Values{}, err
	}
	v, err := t.Values(form)
	if err != nil {
		return nil, nil, algo.Values{}, cli.AsUsage(err)
	}
	sw, err := t.Build(chip(target), form)
	return t, sw, v, err
}

// chip of a flag.
func chip(target string) tna.Target {
	if target == "tofino2" {
		return tna.Tofino2
	}
	return tna.Tofino1
}

// p4Form of a twin for parameters.
func p4Form(t *twin.Twin, d *algo.Descriptor, set []string) (twin.Form, error) {
	given, err := parseSet(set, []string{d.Name})
	if err != nil || len(given[d.Name]) == 0 {
		return twin.Form{}, err
	}
	if err := t.Check(given[d.Name]); err != nil {
		return twin.Form{}, cli.AsUsage(err)
	}
	form := twin.Form{Generated: true, Set: given[d.Name]}
	if slices.ContainsFunc(t.Forms, func(f twin.Form) bool { return len(f.Define) > 0 }) && !slices.ContainsFunc(t.Forms, form.Has) {
		return twin.Form{}, cli.UsageError("p4 %s: --set: the parameters of this twin are chosen when it is compiled (-D, docs/twins.md) and cannot be changed here", d.Name)
	}
	return form, nil
}

func p4Run(env *environment, o *p4RunOptions, name string, files []string) error {
	if (o.registers == "") == (len(files) == 0) {
		return cli.UsageError("p4 run %s: either captures, or --registers FILE", name)
	}
	t, sw, v, err := p4Twin(name, o.target.Value, o.set)
	if err != nil {
		return err
	}
	e, err := dump.NewEvaluator(t, v, int64(o.window))
	if errors.Is(err, dump.ErrUncounted) {
		return cli.AsUsage(err)
	}
	if err != nil {
		return err
	}
	defer e.Close()
	d, _ := algo.Lookup(t.Algorithm)
	s := &selection{windows: windows.Lengths{All: o.window}, seed: o.seed, hash: &cli.Enum[algo.Hash]{Value: algo.HashCRC}}
	about := s.describe(env, "p4 run", []session.Selected{{Descriptor: d, Values: v}})
	about.Files, about.Clock = slices.Concat(files, nonEmpty(o.registers)), report.Clock{Name: "capture"}
	m, err := newMeasurement(env, o.output, about, false)
	if err != nil {
		return err
	}
	number := 0
	window := func(d *dump.Dump, last bool) error {
		line, err := e.Window(d, report.Window{Start: d.Start, End: d.End, Number: number, Last: last})
		if err != nil {
			return err
		}
		number++
		if last && o.dump != "" {
			err = writeDump(o.dump, d)
		}
		return errors.Join(err, m.emit(line))
	}
	return m.measure(func(ctx context.Context) error {
		if o.registers != "" {
			return evaluateFile(o.registers, t, sw, window)
		}
		return playFiles(ctx, env, &dump.Player{Twin: t, Switch: sw, Width: int64(o.window), Seed: o.seed, Window: window}, files)
	})
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func playFiles(ctx context.Context, env *environment, p *dump.Player, files []string) error {
	sources, err := captures.OpenAll(files, env.stdin)
	if err != nil {
		return err
	}
	source := captures.Concat(sources...)
	defer source.Close()
	return p.Play(ctx, source)
}

func evaluateFile(name string, t *twin.Twin, sw *tna.Switch, window func(*dump.Dump, bool) error) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read registers: %w", err)
	}
	defer f.Close()
	d, err := dump.Read(f, t, sw)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return window(d, true)
}

func writeDump(name string, d *dump.Dump) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write registers: %w", err)
	}
	return errors.Join(d.Write(f), f.Close())
}
