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

const coordinatorLong = `Puts the windows of many hosts together and answers as if one of them had seen everything. Agents bring windows of the rules that they
share; the coordinator tells them what to measure, with which hash seeds, parameters and windows, and refuses what does not fit. It needs
no privileges. Everything stays on this host unless the configuration says otherwise; what leaves it is encrypted, and both ends show
certificates (xdpmon-coordinator keys). Three coordinators in a cluster stand in for each other. docs/coordinator.md has the whole.

Exit codes: 0 done, 1 failed, 2 wrong usage.`

// options are the flags of the coordinator.
type options struct {
	config        string
	check, schema bool
}

func newCoordinator(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "xdpmon-coordinator --config FILE", Short: "Puts windows of many hosts together, as they arrive", Long: coordinatorLong,
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
