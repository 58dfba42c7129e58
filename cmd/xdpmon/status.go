package main

import (
	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/dropsverb"
	"github.com/xdpmon/xdpmon/userspace/report/host"
)

const statusLong = `Lists the programs of xdpmon on this host: on which interface and hook, which algorithms run there, how many
packets the running window has, and which process or pin holds it. Attachments with the same instance number
share their registers.`

func newStatus(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "List what is attached", Long: statusLong, Example: "  sudo xdpmon status\n  sudo xdpmon status --output json | jq .interface",
		Args: cli.NeedArgs(0, 0, "status takes none"),
	}
	answer := addAnswer(env, cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		list, err := env.engine.status()
		if err != nil {
			return err
		}
		if answer.asJSON() {
			return printEach(env, list)
		}
		return env.printLines(host.Status(list)...)
	}
	return cmd
}

// printEach writes one JSON object a line.
func printEach[T any](env *environment, list []T) error {
	for _, one := range list {
		if err := env.printJSON(one); err != nil {
			return err
		}
	}
	return nil
}

func newDrops(env *environment) *cobra.Command {
	cmd := dropsverb.New(dropsverb.Env{Stderr: env.stderr, Terminal: func() bool { return env.isTerminal(env.stdout) }, Now: env.now, After: env.after, Signals: env.signals,
		Privilege: env.engine.privilege, Settle: env.engine.settle, Open: dropsverb.Open, PrintJSON: env.printJSON, PrintLines: env.printLines}, addOutput)
	cmd.ValidArgsFunction = completeInterfaces
	return cmd
}
