package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/naming"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/windows"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const attachLong = `Attaches algorithms to interfaces and reports every window until Ctrl-C, SIGTERM or --duration. Measuring
drops no packet. The programs are removed when xdpmon ends, even when it is killed, unless --pin keeps
them. Programs of other owners on an interface are named and stay attached.

Several interfaces feed one set of registers, so that a request on one interface meets its response on another; with --each every
interface has its own, and its own windows and metrics.

--hook auto takes XDP on hardware and TC on veth, tap and bridge ports, where native XDP would cost bulk TCP
most of its throughput. --mode native is the default and never falls back to generic; --mode auto does, with a warning.
--direction: a host sees its requests leave and the responses arrive, so one interface is measured in both directions; with
several interfaces a forwarded packet would be seen twice, so they are measured at ingress only.

A terminal gets the screen of xdpmon top (q ends the run, ? lists keys); --output table is a table that redraws instead.`

const attachExample = `  sudo xdpmon attach eth0 --algo fridge
  sudo xdpmon attach eth0 --algo fridge --set fridge.match=dns --window 60s
  sudo xdpmon attach eth0 --algo fridge,lean,reorder --window 10s,lean=1m,reorder=5m
  sudo xdpmon attach eth0 eth1 --algo fridge,rtt-array --output json | jq .report.delay_ns.p95
  sudo xdpmon attach eth0 --algo fridge --listen :9400 --duration 1h
  sudo xdpmon attach eth0 --algo fridge --pin edge      (survives xdpmon; detach removes it)`

// attachOptions are the flags of attach.
type attachOptions struct {
	selection *selection
	measure   *measureOptions
	snapshots *snapshotOptions
	hook      *cli.Enum[attach.Hook]
	mode      *cli.Enum[attach.Mode]
	direction *cli.Enum[attach.Direction]
	duration  time.Duration
	pin       string
	each      bool
}

func newAttach(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "attach IFACE... --algo NAME,...", Short: "Measure on interfaces", Long: attachLong, Example: attachExample,
		Args:              cli.NeedArgs(1, -1, "the interface to attach to"),
		ValidArgsFunction: completeInterfaces,
	}
	o := &attachOptions{selection: addSelection(cmd, 10*time.Second), measure: addMeasure(cmd), snapshots: addSnapshots(cmd)}
	o.measure.full = true
	o.hook = cli.AddEnum(cmd, "hook", attach.HookAuto, "where to attach", attach.Hooks...)
	o.mode = cli.AddEnum(cmd, "mode", attach.ModeNative, "how XDP runs", attach.Modes...)
	o.direction = cli.AddEnum(cmd, "direction", "", "which packets to see (default both for one interface and with --each, ingress for several)", attach.Directions...)
	cmd.Flags().DurationVar(&o.duration, "duration", 0, "end after this time (default: on Ctrl-C)")
	cmd.Flags().StringVar(&o.pin, "pin", "", "keep programs and counts in bpffs under `NAME` when xdpmon ends; a start with the same name takes them over")
	cmd.Flags().BoolVar(&o.each, "each", false, "measure every interface separately: windows, tables and metrics of its own, and as many registers")
	cmd.RunE = func(_ *cobra.Command, ifaces []string) error { return runAttach(env, o, ifaces) }
	return cmd
}

func runAttach(env *environment, o *attachOptions, ifaces []string) error {
	if o.selection.interfaces = len(ifaces); o.each {
		o.selection.interfaces = 1
	}
	selected, err := o.selection.resolve(false)
	if err != nil {
		return err
	}
	if err := errors.Join(o.check(ifaces), o.snapshots.check()); err != nil {
		return err
	}
	if o.pin != "" && session.Several(selected, o.selection.windows.All) {
		return cli.UsageError("--pin with windows of several lengths: the algorithms of a pin have windows of one length")
	}
	run := o.selection.describe(env, "attach", selected)
	direction := o.directionOf(ifaces)
	run.Each = o.each
	run.Interfaces, run.Hook, run.Mode, run.Direction = ifaces, o.hook.String(), o.mode.String(), string(direction)
	run.Clock = report.Clock{Name: "monotonic", UnixOffsetNS: env.now().UnixNano() - env.monotonic()}
	m, err := newMeasurement(env, o.measure, run, true)
	if err != nil {
		return err
	}
	cfg := session.LiveConfig{Config: o.selection.config(selected), Interfaces: ifaces, Hook: o.hook.Value, Mode: o.mode.Value,
		Direction: direction, Pin: o.pin, Duration: o.duration, Each: o.each}
	if err := m.keepSnapshots(o.snapshots, true); err != nil {
		return errors.Join(err, m.close())
	}
	cfg.Snapshots = o.snapshots.dir != ""
	cfg.Loading = m.loading()
	cfg.Emit, cfg.Notice = m.emit, m.notice
	cfg.Changed = func(iface string, on bool) {
		naming.ListenOn(m.listener, ifaces)
		m.store.Attached(iface, on)
	}
	if o.direction.Value == "" && len(ifaces) > 1 && !o.each {
		m.notice("several interfaces: packets are seen on arrival only, so that a forwarded one counts once; --direction both sees those that leave, too")
	}
	cfg.Started = func(attached []*attach.Attachment) {
		if err := env.engine.settle(); err != nil {
			m.notice("WARNING: this process keeps more privileges than it needs: %v", err)
		}
		naming.ListenOn(m.listener, ifaces)
		m.start(func(r *report.Run) { r.Attached = placesOf(attached) })
	}
	return m.measure(func(ctx context.Context) error { return env.engine.live(ctx, cfg) })
}

// placesOf names the hooks of the attached programs.
func placesOf(attached []*attach.Attachment) []report.Attached {
	var all []report.Attached
	for _, a := range attached {
		for _, p := range a.Places() {
			all = append(all, report.Attached{Interface: a.Interface, Hook: string(p.Hook), Mode: string(p.Mode),
				Direction: string(p.Direction), Via: p.Via})
		}
	}
	return all
}

func (o *attachOptions) directionOf(ifaces []string) attach.Direction {
	switch {
	case o.direction.Value != "":
		return o.direction.Value
	case len(ifaces) == 1 || o.each:
		return attach.Both
	}
	return attach.Ingress
}

// check refuses options that cannot work on any machine.
func (o *attachOptions) check(ifaces []string) error {
	for i, name := range ifaces {
		if slices.Contains(ifaces[:i], name) {
			return cli.UsageError("interface %s is given twice", name)
		}
	}
	if o.selection.windows.All == 0 {
		return cli.UsageError("--window 0: a window without an end is for captures; allowed are %v to %v", windows.Min, windows.Max)
	}
	if o.duration < 0 {
		return cli.UsageError("--duration %v: give a positive time like 90s or 1h", o.duration)
	}
	if o.each && o.pin != "" {
		return cli.UsageError("--each with --pin: a pin keeps one instance; give every interface an xdpmon and a pin of its own")
	}
	if strings.ContainsAny(o.pin, "/ ") || strings.HasPrefix(o.pin, ".") {
		return cli.UsageError("--pin %q: a name of letters, digits, - and _, without / and not beginning with a dot", o.pin)
	}
	return nil
}

// completeInterfaces offers the interfaces that were not named yet.
func completeInterfaces(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, i := range all {
		if !slices.Contains(given, i.Name) {
			names = append(names, i.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
