package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/completion"
	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/agent/past"
	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/store"
)

const historyLong = `Shows windows that an agent has stored. It queries the agent that runs on this host, or reads the store when no agent runs;
both need root or the agent's user. Times are RFC 3339, or how long ago.

A terminal gets a line a window, with the members that --show names; a pipe gets the windows as they were written, or with --show these members of
each, as JSON. --output table writes lines into a pipe, too.`

const historyExample = `  sudo xdpmon history --from 2h --algo fridge --show report.delay_ns.p50,report.delay_ns.p99
  sudo xdpmon history --from 2026-01-02T15:00:00Z --to 2026-01-02T16:00:00Z --output json | jq .report
  sudo xdpmon history --instance tenants --interface vnet0 --newest --limit 5
  sudo xdpmon history --from 24h --algo fridge --snapshots day && xdpmon merge day/*      one answer of a day`

// historyOptions are the flags of history.
type historyOptions struct {
	from, to, algorithm string
	instance, iface     string
	limit               int
	newest, findings    bool
	show                []string
	config, snapshots   string
	output              *cli.Enum[string]
}

func newHistory(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "history", Short: "Show windows that an agent has stored", Long: historyLong, Example: historyExample,
		Args: cli.NeedArgs(0, 0, "history takes none"),
	}
	o := &historyOptions{output: addOutput(cmd)}
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "", "windows that ended at this `TIME` or later: 2h (ago), 2026-01-02T15:04:05Z")
	f.StringVar(&o.to, "to", "", "windows that ended before this `TIME`")
	f.StringVarP(&o.algorithm, "algo", "a", "", "of the algorithm `NAME` only")
	f.StringVar(&o.instance, "instance", "", "of this instance only, `NAME` as the configuration has it (tenants)")
	f.StringVarP(&o.iface, "interface", "i", "", "with this interface only, `NAME` (vnet0)")
	f.IntVar(&o.limit, "limit", 0, "at most so many windows (default: all)")
	f.BoolVar(&o.newest, "newest", false, "the newest first")
	f.StringSliceVar(&o.show, "show", nil, "members of a window that a line shows, `PATH,...` (report.delay_ns.p99)")
	f.StringVar(&o.snapshots, "snapshots", "", "write the windows' snapshots into `DIR`, for xdpmon merge, and show nothing; the agent's store has them with snapshots: true")
	f.StringVarP(&o.config, "config", "c", config.DefaultPath, "the agent's configuration, a YAML `FILE`, which names its socket")
	f.BoolVar(&o.findings, "findings", false, "show findings instead of windows")
	cli.Complete(cmd, "algo", completion.Algorithms)
	cmd.RunE = func(*cobra.Command, []string) error { return history(env, o) }
	return cmd
}

func history(env *environment, o *historyOptions) error {
	if o.limit < 0 {
		return cli.UsageError("--limit %d: give a positive number", o.limit)
	}
	if o.algorithm != "" {
		if _, err := lookup(o.algorithm); err != nil {
			return err
		}
	}
	if o.findings {
		if o.algorithm != "" || o.snapshots != "" {
			return cli.UsageError("--findings cannot be combined with --algo or --snapshots: findings are of all algorithms")
		}
		o.algorithm = api.FindingRecords
	}
	q := store.Query{Algorithm: o.algorithm, Instance: o.instance, Interface: o.iface, Limit: o.limit, Newest: o.newest, Snapshots: o.snapshots != ""}
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"from", o.from, &q.From}, {"to", o.to, &q.To}} {
		at, err := api.When(t.text, env.now())
		if err != nil {
			return cli.UsageError("--%s: %w", t.flag, err)
		}
		*t.at = at
	}
	cfg, err := config.Load(o.config)
	if err != nil {
		return cli.ConfigError(err)
	}
	text, more, err := past.Recall(cfg, q)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if more && q.Limit == 0 {
		fmt.Fprintln(env.stderr, "xdpmon: there are more windows than are shown at once: narrow --from and --to")
	}
	if q.Snapshots {
		return writeSnapshots(env, o.snapshots, text)
	}
	if o.output.Value == "json" || o.output.Value == "auto" && !env.isTerminal(env.stdout) {
		if len(o.show) > 0 && !o.findings {
			if text, err = past.Select(text, o.show); err != nil {
				return fmt.Errorf("history: %w", err)
			}
		}
		_, err := env.stdout.Write(text)
		return err
	}
	if o.findings {
		lines, err := past.Sentences(text, env.style())
		if err != nil {
			return fmt.Errorf("history --findings: %w", err)
		}
		return env.printLines(lines...)
	}
	table, err := past.Table(text, o.show)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return env.printLines(table)
}

// writeSnapshots writes stored snapshots into a folder and prints their number.
func writeSnapshots(env *environment, dir string, text []byte) error {
	n, err := past.Write(text, dir)
	if err != nil {
		return fmt.Errorf("history --snapshots: %w", err)
	}
	if n == 0 {
		return errors.New("history --snapshots: the store has none of these windows: set snapshots: true in the agent's store")
	}
	return env.printLines(fmt.Sprintf("%d snapshots in %s", n, dir))
}
