package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/internal/manager"
	"github.com/xdpmon/xdpmon/userspace/agent"
	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/outlet"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
)

const agentLong = `Measures for months, as a service: on every interface that matches a rule of the configuration, attached when it appears and
detached when it is removed. SIGHUP reads the configuration again: unchanged parts continue, changed ones are exchanged while packets
arrive, and an invalid configuration is refused with line and column while the running one stays. SIGTERM reports the last windows and ends.

Windows are written to JSON files, to Prometheus, and to a store that "xdpmon history" reads. The agent notifies the service manager
when it is ready, reloads and stops, and /healthz has the state of every attachment. docs/agent.md describes all of it.`

const agentExample = `  xdpmon agent --config /etc/xdpmon/agent.yaml --check     check it, and print what it would use
  sudo xdpmon agent --config /etc/xdpmon/agent.yaml
  xdpmon agent --schema > agent.schema.json                for an editor
  xdpmon history --from 2h --algo fridge`

// agentOptions are the flags of agent.
type agentOptions struct {
	config        string
	check, schema bool
}

func newAgent(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "agent --config FILE", Short: "Measure for months, as a configuration file states", Long: agentLong, Example: agentExample,
		Args: cli.NeedArgs(0, 0, "agent takes its configuration from --config"),
	}
	o := &agentOptions{}
	cmd.Flags().StringVarP(&o.config, "config", "c", config.DefaultPath, "the configuration, a YAML `FILE`")
	cmd.Flags().BoolVar(&o.check, "check", false, "only check the configuration, and print what it would attach now and the resources that it needs")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "only print the JSON schema of the configuration")
	cmd.RunE = func(*cobra.Command, []string) error { return runAgent(env, o) }
	return cmd
}

func runAgent(env *environment, o *agentOptions) error {
	switch {
	case o.schema:
		return env.printSchema(config.Schema())
	case o.check:
		return cli.CheckConfig(env.stderr, "xdpmon", o.config, config.Load, agent.Preview, env.printLines)
	}
	if _, err := config.Load(o.config); err != nil { // errors in the configuration are reported without privileges
		return cli.ConfigError(err)
	}
	if err := env.engine.privilege(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	ctx, reload, watchdog, stop, err := cli.Service(env.signals)
	if err != nil {
		return err
	}
	defer stop()
	return cli.ConfigError(env.engine.agent(ctx, agent.Options{Path: o.config, Log: func(l settings.Log) slog.Handler { return newLogger(env, l) },
		Notify: manager.Notify,
		Settle: env.engine.settleAgent, Reload: reload, Stdout: env.stdout, Version: version(), Kernel: env.kernel, Watchdog: watchdog}))
}

// newLogger writes to standard error.
func newLogger(env *environment, l settings.Log) slog.Handler {
	return outlet.NewLogger(env.stderr, l, env.getenv("JOURNAL_STREAM") != "")
}

func (env *environment) printSchema(text []byte, err error) error {
	if err == nil {
		_, err = env.stdout.Write(text)
	}
	return err
}
