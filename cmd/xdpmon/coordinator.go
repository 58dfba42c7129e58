package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/manager"
	"github.com/xdpmon/xdpmon/userspace/coordinator"
	"github.com/xdpmon/xdpmon/userspace/coordinator/config"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
)

//go:generate sh -c "go run . coordinator --schema >../../deploy/coordinator.schema.json"
const coordinatorLong = `Puts the windows of many hosts together and answers as if one of them had seen everything. Agents bring windows of the rules that they
share; the coordinator tells them what to measure, with which hash seeds, parameters and windows, and refuses what does not fit. It needs
no privileges. Everything stays on this host unless the configuration says otherwise; what leaves it is encrypted, and both ends show
certificates (xdpmon keys). Three coordinators in a cluster stand in for each other. docs/coordinator.md has the whole.`

func newCoordinator(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "coordinator --config FILE", Short: "Put windows of many hosts together, as they come", Long: coordinatorLong,
		Example: "  xdpmon coordinator --config /etc/xdpmon/coordinator.yaml --check", Args: needArgs(0, 0, "coordinator takes its orders from --config"),
	}
	o := &agentOptions{}
	cmd.Flags().StringVarP(&o.config, "config", "c", config.DefaultPath, "the configuration, a YAML `FILE`")
	cmd.Flags().BoolVar(&o.check, "check", false, "only say whether the configuration is right")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "only print the JSON schema of the configuration")
	cmd.RunE = func(*cobra.Command, []string) error { return runCoordinator(env, o) }
	return cmd
}

func runCoordinator(env *environment, o *agentOptions) error {
	if o.schema {
		return env.printSchema(config.Schema())
	}
	if o.check {
		return checkConfig(env, o.config, config.Load, coordinator.Preview)
	}
	ctx, reload, watchdog, stop, err := service(env)
	if err != nil {
		return err
	}
	defer stop()
	return configError(coordinator.Run(ctx, coordinator.Options{Path: o.config, Log: func(l settings.Log) slog.Handler { return newLogger(env, l) },
		Notify: manager.Notify, Reload: reload, Stdout: env.stdout, Version: version(), Watchdog: watchdog}))
}
