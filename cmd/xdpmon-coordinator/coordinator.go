package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/internal/manager"
	"github.com/xdpmon/xdpmon/userspace/coordinator"
	"github.com/xdpmon/xdpmon/userspace/coordinator/config"
	"github.com/xdpmon/xdpmon/userspace/outlet"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
)

const coordinatorLong = `Merges the windows of many hosts and answers as if one of them had seen everything. Agents send windows of the rules that they
share; the coordinator configures their measurements with hash seeds, parameters and windows, and refuses windows that do not match. It needs
no privileges. It listens on this host only unless it is configured otherwise; connections to other hosts are encrypted and both ends
authenticate with certificates (xdpmon-coordinator keys). Three coordinators form a cluster that survives the loss of one. See docs/coordinator.md.

Exit codes: 0 done, 1 failed, 2 wrong usage.`

// options are the flags of the coordinator.
type options struct {
	config        string
	check, schema bool
}

func newCoordinator(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "xdpmon-coordinator --config FILE", Short: "Merges windows of many hosts as they arrive", Long: coordinatorLong,
		Example: "  xdpmon-coordinator --config " + config.DefaultPath + " --check\n  xdpmon-coordinator keys init",
		Args:    cli.UnknownCommand,
	}
	o := &options{}
	cmd.Flags().StringVarP(&o.config, "config", "c", config.DefaultPath, "the configuration, a YAML `FILE`")
	cmd.Flags().BoolVar(&o.check, "check", false, "only check the configuration")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "only print the JSON schema of the configuration")
	cmd.RunE = func(*cobra.Command, []string) error { return runCoordinator(env, o) }
	return cmd
}

func runCoordinator(env *environment, o *options) error {
	if o.schema {
		text, err := config.Schema()
		if err == nil {
			_, err = env.stdout.Write(text)
		}
		return err
	}
	if o.check {
		return cli.CheckConfig(env.stderr, "xdpmon-coordinator", o.config, config.Load, coordinator.Preview, env.printLines)
	}
	ctx, reload, watchdog, stop, err := cli.Service(env.signals)
	if err != nil {
		return err
	}
	defer stop()
	return cli.ConfigError(coordinator.Run(ctx, coordinator.Options{Path: o.config,
		Log: func(l settings.Log) slog.Handler {
			return outlet.NewLogger(env.stderr, l, env.getenv("JOURNAL_STREAM") != "")
		},
		Notify: manager.Notify, Reload: reload, Stdout: env.stdout, Version: cli.Version(release, revision), Watchdog: watchdog}))
}
