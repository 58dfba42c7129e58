package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const replayLong = `Runs captures through the programs that attach loads: the same bytecode, with the capture's timestamps
as the clock. pcap, pcapng and both under gzip are read, nanosecond files and cut packets too; - is standard
input. Several files are read one after the other as one capture; with --merge they were taken at the same time
at several places: their packets are merged in the order of time, file n is interface n, and the packets of the last file
are leaving (conquest: it is taken after the queue).

With --truth an exact calculation with unbounded memory sees the same packets, and every estimate is shown
next to the exact value with its error: this shows the accuracy of a given memory on your own traffic.

Without --window the whole capture is one window. The same seed gives the same answer every time.
It needs the privilege to load programs (root, or CAP_BPF and CAP_NET_ADMIN); it attaches nothing.`

const replayExample = `  xdpmon replay capture.pcap --algo fridge
  xdpmon replay capture.pcap.gz --algo fridge --truth --set fridge.fridges=4096@1
  xdpmon replay a.pcap b.pcapng --algo fridge,rtt-array --window 60s --output json
  xdpmon replay --merge before.pcap after.pcap --algo conquest --set conquest.source=tap
  tcpdump -w - -i eth0 | xdpmon replay - --algo fridge --window 10s`

func newReplay(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay FILE... --algo NAME,...", Short: "Run captures through the algorithms", Long: replayLong, Example: replayExample,
		Args: cli.NeedArgs(1, -1, "the capture (a file, or - for standard input)"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"pcap", "pcapng", "cap", "gz"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	selection := addSelection(cmd, 0)
	output, snapshots := addMeasure(cmd), addSnapshots(cmd)
	truth := cmd.Flags().Bool("truth", false, "calculate the exact answer too and show the error")
	merge := cmd.Flags().Bool("merge", false, "captures from several places at the same time: merged by time, the last one has the leaving packets")
	cmd.RunE = func(_ *cobra.Command, files []string) error {
		return runReplay(env, selection, output, snapshots, files, *truth, *merge)
	}
	return cmd
}

func runReplay(env *environment, selection *selection, output *measureOptions, snapshots *snapshotOptions, files []string, truth, merge bool) error {
	selected, err := selection.resolve(true)
	if err != nil {
		return err
	}
	if err := errors.Join(stdinOnce(files), snapshots.check()); err != nil {
		return err
	}
	if merge && len(files) < 2 {
		return cli.UsageError("--merge merges captures of several places by time: name two or more")
	}
	run := selection.describe(env, "replay", selected)
	run.Files, run.Clock, run.Seed = files, report.Clock{Name: "capture"}, max(1, selection.seed)
	m, err := newMeasurement(env, output, run, false)
	if err != nil {
		return err
	}
	if err := m.keepSnapshots(snapshots, false); err != nil {
		return errors.Join(err, m.close())
	}
	cfg := selection.config(selected)
	cfg.Snapshots = snapshots.dir != ""
	cfg.Truth, cfg.Merge, cfg.Emit, cfg.Notice, cfg.Frames = truth, merge, m.emit, m.notice, m.names.Frames()
	return m.measure(func(ctx context.Context) error {
		return env.engine.replay(ctx, cfg, files, env.stdin, m.progress())
	})
}

// stdinOnce refuses a second "-": the first one reads all of it.
func stdinOnce(files []string) error {
	n := 0
	for _, f := range files {
		if f == "-" {
			n++
		}
	}
	if n > 1 {
		return cli.UsageError("standard input (-) is given %d times; it can be read once", n)
	}
	return nil
}
