package main

import (
	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/completion"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/algo/describe"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func newAlgos(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "algos [NAME]", Short: "List the algorithms, or explain one and its parameters",
		Long:              "Without a name: one line for each algorithm. With a name: what it measures and how, and its parameters for --set.",
		Example:           "  xdpmon algos\n  xdpmon algos fridge\n  xdpmon algos --output json",
		Args:              cli.NeedArgs(0, 1, "the name of an algorithm"),
		ValidArgsFunction: completeName,
	}
	answer := addAnswer(env, cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return listAlgorithms(env, answer.asJSON())
		}
		d, err := lookup(args[0])
		if err != nil {
			return err
		}
		if answer.asJSON() {
			return env.printJSON(describe.JSON(d))
		}
		return env.printLines(describe.Lines(d, env.style())...)
	}
	return cmd
}

// completeName completes one algorithm's name.
func completeName(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completion.Algorithms(""), cobra.ShellCompDirectiveNoFileComp
}

func listAlgorithms(env *environment, asJSON bool) error {
	if asJSON {
		for _, d := range algo.All() {
			if err := env.printJSON(describe.JSON(d)); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, 0, len(algo.All()))
	for _, d := range algo.All() {
		rows = append(rows, []string{d.Name, d.Summary})
	}
	return env.printLines(append(report.Align(rows), "", "xdpmon algos NAME explains one and lists its parameters.")...)
}
