package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/check"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/naming"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/windows"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const checkLong = `Measures with the algorithms that do not act on packets, and prints findings only. No packet is dropped or marked,
and no program stays attached.

A finding compares a measurement with a promise (--promise) or else with earlier windows: the first five windows of a run
are the baseline, so only scans, floods and missing answers are found in them. docs/findings.md names all kinds, and what each needs.

Exit codes: 0 nothing was found, 4 something was; 1 to 3 as everywhere.`

const checkExample = `  sudo xdpmon check eth0                                  a minute of eth0
  sudo xdpmon check eth0 eth1 --for 10m --window 10s
  sudo xdpmon check eth0 --promise '10.2.0.0/16 p50 < 50ms' --promise 'eth0 loss < 0.1 %'
  sudo xdpmon check eth0 --connections                    connections that wait, too, each with its cause
  xdpmon check capture.pcap                               the same from a file
  xdpmon check capture.pcap --output json | jq -r 'select(.finding) | .finding.text'`

// checkOptions are the flags of check.
type checkOptions struct {
	output    *cli.Enum[string]
	promises  []string
	parsed    []finding.Promise
	took      time.Duration
	window    time.Duration
	seed      uint64
	decap     bool
	direction *cli.Enum[attach.Direction]
	names     *naming.Options
	single    bool
}

func newCheck(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check IFACE...|CAPTURE...", Short: "Report what is wrong on interfaces or in captures", Long: checkLong, Example: checkExample,
		Args:              cli.NeedArgs(1, -1, "the interface or capture to check"),
		ValidArgsFunction: completeInterfaces,
	}
	o := &checkOptions{output: addOutput(cmd), names: naming.Add(cmd, "services", "guests")}
	f := cmd.Flags()
	f.DurationVar(&o.took, "for", time.Minute, "how long to measure on interfaces; 0: until Ctrl-C")
	f.DurationVar(&o.window, "window", 5*time.Second, "length of a window, 1s to 24h: a finding needs two")
	f.StringArrayVar(&o.promises, "promise", nil, "what was promised, `'SUBJECT p99 < 50ms'`, 'SUBJECT loss < 0.1 %' or 'SUBJECT share fair'; a subject is a prefix, an address or an interface; repeatable")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the hashes (default: random live, 1 in a replay)")
	f.BoolVar(&o.decap, "decap", false, "look into VXLAN, GENEVE, GRE, IPIP and 6in4, one level")
	f.BoolVar(&o.single, "connections", false, "also name single connections that wait for their receiver, the path or their server: where most do not wait")
	o.direction = cli.AddEnum(cmd, "direction", attach.Both, "which packets to see", attach.Directions...)
	cmd.RunE = func(_ *cobra.Command, args []string) error { return runCheck(env, o, args) }
	return cmd
}

func runCheck(env *environment, o *checkOptions, args []string) error {
	captures, err := o.check(args)
	if err != nil {
		return err
	}
	if err := env.engine.privilege(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	notice := func(text string) { fmt.Fprintf(env.stderr, "xdpmon: %s\n", report.Printable(text)) }
	known, listener, err := o.names.Open(!captures, func(format string, a ...any) { notice(fmt.Sprintf(format, a...)) })
	if err != nil {
		return err
	}
	defer known.Close()
	defer listener.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals, unsubscribe := env.signals()
	defer unsubscribe()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	host, _ := os.Hostname() // only printed
	found, err := check.Run(ctx, check.Options{Names: args, Host: host, Captures: captures, Promises: o.parsed, Connections: o.single, Seeded: o.seed != 0, For: o.took, Window: o.window, Direction: o.direction.Value,
		JSON: o.output.Value == "json" || o.output.Value == "auto" && !env.isTerminal(env.stdout),
		Config: func(algorithms, set []string, replay bool) (session.Config, error) {
			return o.config(algorithms, set, replay)
		},
		Replay: func(ctx context.Context, cfg session.Config) error {
			return env.engine.replay(ctx, cfg, args, env.stdin, nil)
		},
		Live: env.engine.live, Settle: func() error { naming.ListenOn(listener, args); return env.engine.settle() }, Known: known, After: env.after, PrintJSON: env.printJSON, PrintLines: env.printLines, Style: env.style(),
		Clock: report.Clock{UnixOffsetNS: env.now().UnixNano() - env.monotonic()}, Notice: notice})
	if err == nil && found {
		return errFound
	}
	return err
}

// config of a session of a check.
func (o *checkOptions) config(algorithms, set []string, replay bool) (session.Config, error) {
	s := &selection{algorithms: algorithms, set: set, seed: o.seed, windows: windows.Lengths{All: o.window}, decap: o.decap, interfaces: 1, hash: &cli.Enum[algo.Hash]{Value: algo.HashFast}}
	selected, err := s.resolve(replay)
	if err != nil {
		return session.Config{}, err
	}
	cfg := s.config(selected)
	cfg.Notice = func(string, ...any) {}
	return cfg, nil
}

// check refuses invalid options, and reports whether captures were named.
func (o *checkOptions) check(args []string) (captures bool, err error) {
	if o.window < time.Second || o.window > windows.Max {
		return false, cli.UsageError("--window %v: allowed are 1s to %v", o.window, windows.Max)
	}
	if o.took < 0 {
		return false, cli.UsageError("--for %v: give a positive time like 60s or 10m", o.took)
	}
	for _, text := range o.promises {
		p, err := finding.ParsePromise(text)
		if err != nil {
			return false, cli.UsageError("--promise %w", err)
		}
		o.parsed = append(o.parsed, p)
	}
	files := 0
	for i, name := range args {
		if slices.Contains(args[:i], name) {
			return false, cli.UsageError("%s is given twice", name)
		}
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() || strings.ContainsRune(name, '/') {
			files++
		}
		if name == "-" {
			return false, cli.UsageError("check reads a capture several times; write it into a file first")
		}
	}
	if files != 0 && files != len(args) {
		return false, cli.UsageError("interfaces and captures cannot be checked together: %s", strings.Join(args, ", "))
	}
	return files > 0, nil
}
