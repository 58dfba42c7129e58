package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/staged"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/windows"
	"github.com/xdpmon/xdpmon/demo/scene"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// demoOptions are the flags of demo.
type demoOptions struct {
	selection *selection
	measure   *measureOptions
	rate      string
	median    time.Duration
	duration  time.Duration
	incidents bool
}

const (
	demoAlgorithm = "fridge"
	maxDemoRate   = 5000 // handshakes a second: two hosts and a link run on this machine, too
)

func newDemo(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo [NAME,...]", Short: "Measure generated traffic: delays next to the exact ones, or staged incidents", Long: staged.Long, Example: staged.Example,
		Args: cli.NeedArgs(0, 1, "the names of algorithms"), ValidArgsFunction: completeName,
	}
	o := &demoOptions{selection: addShared(cmd, 2*time.Second), measure: addMeasure(cmd)}
	f := cmd.Flags()
	f.StringVar(&o.rate, "rate", "500/s", "TCP handshakes a second, a `RATE`")
	f.DurationVar(&o.median, "median", 20*time.Millisecond, "median delay of a handshake, 1ms to 200ms")
	f.DurationVar(&o.duration, "duration", 30*time.Second, "end after this time; 0: on Ctrl-C")
	f.BoolVar(&o.incidents, "incidents", false, "stage incidents on a timetable and measure with everything, until Ctrl-C; the default with --listen and no NAME")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.incidents = o.incidents || len(args) == 0 && o.measure.listen != "" && !f.Changed("incidents"); !o.incidents {
			return demo(env, o, args)
		}
		if !f.Changed("duration") {
			o.duration = 0
		}
		return demoIncidents(env, o, args, f)
	}
	return cmd
}

// demoIncidents refuses flags that apply to handshakes only.
func demoIncidents(env *environment, o *demoOptions, args []string, f *pflag.FlagSet) error {
	for _, name := range []string{"set", "rate", "median", "query"} {
		if f.Changed(name) {
			return cli.UsageError("--%s with --incidents: hosts, traffic and parameters of staged incidents are fixed", name)
		}
	}
	if len(args) > 0 {
		return cli.UsageError("demo %s --incidents: staged incidents are measured with all algorithms; leave the names out", args[0])
	}
	if _, err := o.check(); err != nil {
		return err
	}
	return runIncidents(env, o)
}

func demo(env *environment, o *demoOptions, args []string) error {
	o.choose(args)
	selected, err := o.selection.resolve(false)
	if err != nil {
		return err
	}
	rate, err := o.check()
	if err != nil {
		return err
	}
	cfg := session.LiveConfig{Config: o.selection.config(selected), Hook: attach.HookAuto, Mode: attach.ModeNative, Direction: attach.Both}
	run := o.describe(env, selected, &cfg)
	m, err := newMeasurement(env, o.measure, run, true)
	if err != nil {
		return err
	}
	traffic := scene.Traffic{Rate: rate, Median: o.median, Duration: o.duration, Seed: max(1, o.selection.seed)}
	cfg.Notice, cfg.Changed = m.notice, m.store.Attached
	return m.measure(func(ctx context.Context) error {
		return staged.Handshakes(ctx, m.output(), cfg, traffic, run.Clock.UnixOffsetNS)
	})
}

// choose takes the algorithms from the argument, and defaults for parameters that make the demonstration worth watching.
func (o *demoOptions) choose(args []string) {
	o.selection.algorithms = []string{demoAlgorithm}
	if len(args) > 0 {
		o.selection.algorithms = strings.Split(args[0], ",")
	}
	o.selection.set = staged.Defaults(o.selection.algorithms, o.selection.set)
}

// check returns the rate in handshakes a second.
func (o *demoOptions) check() (float64, error) {
	perSecond, err := cli.ParseRate(o.rate)
	if err != nil {
		return 0, cli.UsageError("--rate: %w", err)
	}
	if perSecond > maxDemoRate {
		return 0, cli.UsageError("--rate %s: at most %d/s, since hosts and link run on this machine too", o.rate, maxDemoRate)
	}
	if o.median < time.Millisecond || o.median > 200*time.Millisecond {
		return 0, cli.UsageError("--median %v: allowed are 1ms to 200ms", o.median)
	}
	if o.selection.windows.All == 0 {
		return 0, cli.UsageError("--window 0: allowed are %v to %v", windows.Min, windows.Max)
	}
	if o.duration < 0 {
		return 0, cli.UsageError("--duration %v: give a positive time like 30s, or 0 to end on Ctrl-C", o.duration)
	}
	return perSecond, nil
}

// output is where a demonstration is shown.
func (m *measurement) output() staged.Output {
	return staged.Output{Live: m.env.engine.live, Emit: m.emit, Draw: m.draw, Notice: m.notice, Fail: m.fail, Start: func(interfaces []string, attached []*attach.Attachment) {
		m.start(func(r *report.Run) { r.Interfaces, r.Attached = interfaces, placesOf(attached) })
	}}
}

// runIncidents measures with everything while incidents are staged.
func runIncidents(env *environment, o *demoOptions) error {
	var configs []session.LiveConfig
	var selected []session.Selected
	for _, p := range staged.Passes() {
		s := *o.selection
		s.algorithms, s.set, s.interfaces = p.Algorithms, p.Set, 1
		one, err := s.resolve(false)
		if err != nil {
			return err
		}
		selected = append(selected, one...)
		configs = append(configs, session.LiveConfig{Config: s.config(one), Name: p.Name, Hook: attach.HookTC, Mode: attach.ModeNative, Direction: attach.Both})
	}
	run := o.describe(env, selected, &configs[0])
	m, err := newMeasurement(env, o.measure, run, true)
	if err != nil {
		return err
	}
	for i := range configs {
		configs[i].Changed = m.store.Attached
	}
	return m.measure(func(ctx context.Context) error {
		return staged.Incidents(ctx, m.output(), max(1, o.selection.seed), configs, o.duration)
	})
}

func (o *demoOptions) describe(env *environment, selected []session.Selected, cfg *session.LiveConfig) report.Run {
	run := o.selection.describe(env, "demo", selected)
	run.Hook, run.Mode, run.Direction = string(cfg.Hook), string(cfg.Mode), string(cfg.Direction)
	run.Clock = report.Clock{Name: "monotonic", UnixOffsetNS: env.now().UnixNano() - env.monotonic()}
	return run
}
