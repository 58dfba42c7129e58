package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/rate"
	"github.com/xdpmon/xdpmon/demo/scene"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const demoLong = `Makes two hosts in network namespaces of their own with a link emulator between them, opens real TCP connections
from one to the other with delays that the emulator applies, attaches the algorithm in the middle, and shows
estimate and truth side by side while they converge. The truth is measured by the emulator in user space, packet
by packet; the algorithm sees only what passes its hook.

The delays are log-normal with a long tail: 97 % around --median, 3 % from 200 to 800 ms. The fridge gets a table that is
far too small to keep every slow handshake (256 entries unless --set says otherwise): watch it correct for that.

Your own network is not touched, and everything is removed at the end, after Ctrl-C and after failures too. It needs
root.`

const demoExample = `  sudo xdpmon demo
  sudo xdpmon demo --rate 1k/s --median 50ms --duration 2m
  sudo xdpmon demo --set fridge.fridges=64@1              even less memory
  sudo xdpmon demo fridge,rtt-array                       beside a plain table of the same size`

// demoOptions are the flags of demo.
type demoOptions struct {
	selection *selection
	measure   *measureOptions
	rate      string
	median    time.Duration
	duration  time.Duration
}

// demoDefaults are parameters that make the demonstration worth watching, unless --set says otherwise.
var demoDefaults = map[string][]string{
	"fridge":    {"fridge.fridges=256@1", "fridge.legs=false"},
	"rtt-array": {"rtt-array.entries=256"},
}

const (
	demoAlgorithm = "fridge"
	maxDemoRate   = 5000 // handshakes a second: two hosts and a link have to run on this machine too
)

func newDemo(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo [NAME,...]", Short: "Measure traffic of its own making, beside the truth", Long: demoLong, Example: demoExample,
		Args: cli.NeedArgs(0, 1, "the names of algorithms"), ValidArgsFunction: completeName,
	}
	o := &demoOptions{selection: addShared(cmd, 2*time.Second), measure: addMeasure(cmd)}
	f := cmd.Flags()
	f.StringVar(&o.rate, "rate", "500/s", "TCP handshakes a second, a `RATE`")
	f.DurationVar(&o.median, "median", 20*time.Millisecond, "median delay of a handshake, 1ms to 200ms")
	f.DurationVar(&o.duration, "duration", 30*time.Second, "end after this time; 0: on Ctrl-C")
	cmd.RunE = func(_ *cobra.Command, args []string) error { return demo(env, o, args) }
	return cmd
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
	run := o.selection.describe(env, "demo", selected)
	cfg := session.LiveConfig{Config: o.selection.config(selected), Hook: attach.HookAuto, Mode: attach.ModeNative, Direction: attach.Both}
	run.Hook, run.Mode, run.Direction = string(cfg.Hook), string(cfg.Mode), string(cfg.Direction)
	run.Clock = report.Clock{Name: "monotonic", UnixOffsetNS: env.now().UnixNano() - env.monotonic()}
	m, err := newMeasurement(env, o.measure, run, true)
	if err != nil {
		return err
	}
	traffic := scene.Traffic{Rate: rate, Median: o.median, Duration: o.duration, Seed: max(1, o.selection.seed)}
	return m.measure(func(ctx context.Context) error { return runDemo(ctx, m, cfg, traffic) })
}

// choose takes the algorithms from the argument, and the parameters that were not set from demoDefaults.
func (o *demoOptions) choose(args []string) {
	o.selection.algorithms = []string{demoAlgorithm}
	if len(args) > 0 {
		o.selection.algorithms = strings.Split(args[0], ",")
	}
	for _, name := range o.selection.algorithms {
		for _, text := range demoDefaults[name] {
			path, _, _ := strings.Cut(text, "=")
			if !slices.ContainsFunc(o.selection.set, func(s string) bool { return strings.HasPrefix(s, path+"=") }) {
				o.selection.set = append(o.selection.set, text)
			}
		}
	}
}

// check returns the rate in handshakes a second.
func (o *demoOptions) check() (float64, error) {
	perSecond, err := rate.Parse(o.rate)
	if err != nil {
		return 0, cli.UsageError("--rate: %w", err)
	}
	if perSecond > maxDemoRate {
		return 0, cli.UsageError("--rate %s: at most %d/s, since hosts and link run on this machine too", o.rate, maxDemoRate)
	}
	if o.median < time.Millisecond || o.median > 200*time.Millisecond {
		return 0, cli.UsageError("--median %v: allowed are 1ms to 200ms", o.median)
	}
	if o.selection.window == 0 {
		return 0, cli.UsageError("--window 0: allowed are %v to %v", minWindow, maxWindow)
	}
	if o.duration < 0 {
		return 0, cli.UsageError("--duration %v: give a positive time like 30s, or 0 to end on Ctrl-C", o.duration)
	}
	return perSecond, nil
}

// runDemo builds the network, measures in its middle, and takes it down again whatever happened.
func runDemo(ctx context.Context, m *measurement, cfg session.LiveConfig, traffic scene.Traffic) (err error) {
	truth := scene.NewTruth(m.run.Clock.UnixOffsetNS)
	network, err := scene.NewNetwork(traffic, truth)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	m.notice("%s", traffic.Describe())
	measuring, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	cfg.Interfaces = []string{network.Iface()}
	cfg.Notice, cfg.Changed = m.notice, m.store.Attached
	cfg.Emit = func(l report.Line) error {
		window, summary := truth.Beside(l)
		if err := m.emit(window); err != nil || summary == nil {
			return err
		}
		return m.draw(*summary)
	}
	cfg.Started = func(attached []*attach.Attachment) {
		m.start(func(r *report.Run) { r.Interfaces, r.Attached = cfg.Interfaces, placesOf(attached) })
		network.Begin(ctx, m.fail)
		go network.Wind(ctx, truth, end)
	}
	err = network.InMiddle(func() error { return m.env.engine.live(measuring, cfg) })
	if err == nil && truth.Total() == 0 {
		err = fmt.Errorf("demo: no handshake was completed; `xdpmon features` shows what this kernel can do")
	}
	return err
}
