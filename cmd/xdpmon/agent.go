package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/manager"
	"github.com/xdpmon/xdpmon/userspace/agent"
	"github.com/xdpmon/xdpmon/userspace/agent/config"
	file "github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/outlet"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
)

//go:generate sh -c "go run . agent --schema >../../deploy/agent.schema.json"

const agentLong = `Measures for months, as a service: on every interface that the rules of a configuration want, attached when it appears and
released when it goes. SIGHUP reads the configuration anew: what is the same goes on, what differs is exchanged while packets
come, and one that is wrong is refused with line and column while the running one stays. SIGTERM reports the last windows and ends.

Windows go to JSON files, to Prometheus, and into a store that "xdpmon history" looks back into. The service manager is told
when the agent is ready, reloads and stops, and /healthz says how every attachment fares. docs/agent.md has the whole.`

const agentExample = `  xdpmon agent --config /etc/xdpmon/agent.yaml --check     is it right, and what would it take?
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
		Use: "agent --config FILE", Short: "Measure for months, as a configuration says", Long: agentLong, Example: agentExample,
		Args: needArgs(0, 0, "agent takes its orders from --config"),
	}
	o := &agentOptions{}
	cmd.Flags().StringVarP(&o.config, "config", "c", config.DefaultPath, "the configuration, a YAML `FILE`")
	cmd.Flags().BoolVar(&o.check, "check", false, "only say whether the configuration is right, what it would do now, and what it takes")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "only print the JSON schema of the configuration")
	cmd.RunE = func(*cobra.Command, []string) error { return runAgent(env, o) }
	return cmd
}

func runAgent(env *environment, o *agentOptions) error {
	switch {
	case o.schema:
		return env.printSchema(config.Schema())
	case o.check:
		return checkConfig(env, o.config, config.Load, agent.Preview)
	}
	if _, err := config.Load(o.config); err != nil { // what is wrong with it is told without privileges
		return configError(err)
	}
	if err := env.engine.privilege(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	ctx, reload, watchdog, stop, err := service(env)
	if err != nil {
		return err
	}
	defer stop()
	return configError(env.engine.agent(ctx, agent.Options{Path: o.config, Log: func(l settings.Log) slog.Handler { return newLogger(env, l) },
		Notify: manager.Notify,
		Settle: env.engine.settleAgent, Reload: reload, Stdout: env.stdout, Version: version(), Kernel: env.kernel, Watchdog: watchdog}))
}

// configError is one of usage: the message says where and what is allowed.
func configError(err error) error {
	if problems := (*file.Error)(nil); errors.As(err, &problems) {
		return &usage{err}
	}
	return err
}

func checkConfig[T any](env *environment, path string, load func(string) (*T, error), preview func(*T) ([]string, error)) error {
	cfg, err := load(path)
	if err != nil {
		return configError(err)
	}
	lines, err := preview(cfg)
	if err != nil {
		return err
	}
	if text := file.Exposed(path); text != "" {
		fmt.Fprintf(env.stderr, "xdpmon: %s\n", text)
	}
	return env.printLines(append([]string{path + " is right"}, lines...)...)
}

// service is what a verb that runs for months has of whoever started it; ctx ends with it.
func service(env *environment) (ctx context.Context, reload <-chan os.Signal, watchdog time.Duration, stop func(), err error) {
	if watchdog, err = daemon.SdWatchdogEnabled(false); err != nil {
		return nil, nil, 0, nil, fmt.Errorf("read what the service manager says of its watchdog: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	reload, end := agentSignals(env, cancel)
	return ctx, reload, watchdog, func() { end(); cancel() }, nil
}

// agentSignals tells a hangup, which is a wish for the configuration, from an end.
func agentSignals(env *environment, cancel func()) (reload <-chan os.Signal, stop func()) {
	signals, unsubscribe := env.signals()
	again, done := make(chan os.Signal, 1), make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGHUP {
					cancel()
					return
				}
				select {
				case again <- s:
				default: // one is waiting: it will read what is there then
				}
			case <-done:
				return
			}
		}
	}()
	return again, func() { close(done); unsubscribe() }
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
