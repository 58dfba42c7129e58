package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/keyring"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const rootLong = `xdpmon measures where the packets are: on a host, a hypervisor or a tap box. It says which delays,
losses, reorderings, heavy flows, bursts and unfair users there are, in kilobytes of memory and
nanoseconds a packet, and how far off each answer may be.

Measure:     attach, replay, demo, agent
Look:        status, history, features, algos, pisa, version
Prepare:     plan, p4
Combine:     merge, coordinator, keys
Take down:   detach

A terminal gets tables, a pipe gets one JSON object a line. Exit codes: 0 done, 1 failed, 2 wrong usage,
3 a privilege or a kernel feature is missing.`

const rootExample = `  sudo xdpmon demo                                     see it work on traffic of its own
  sudo xdpmon attach eth0 --algo fridge                delays of TCP handshakes on eth0
  xdpmon replay capture.pcap --algo fridge --truth     the same from a file, beside the exact answer
  xdpmon algos                                         what else it can measure`

// run executes one command line and returns its exit code.
func run(env environment) int {
	root := newRoot(&env)
	root.SetArgs(env.args)
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	fmt.Fprintf(env.stderr, "xdpmon: %s%s\n", report.Printable(distinctLines(err.Error())), remedy(err))
	if code == exitUsage {
		fmt.Fprintf(env.stderr, "%q tells more.\n", strings.TrimSpace(cmd.CommandPath())+" --help")
	}
	return code
}

// distinctLines drops lines that are there already: one cause often comes back from several places at once.
func distinctLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func newRoot(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use: "xdpmon", Short: "Measures delays, losses and heavy flows where the packets are", Long: rootLong, Example: rootExample,
		SilenceUsage: true, SilenceErrors: true,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			_ = cmd.Help()
			return usageError("which command?")
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd == root { // it knows no flag of the command that is misspelt in front
			if unknown := unknownCommand(root, cmd.Flags().Args()); unknown != nil {
				return unknown
			}
		}
		return &usage{betterFlagError(cmd, err)}
	})
	root.AddCommand(
		newAttach(env), newReplay(env), newDemo(env), newDetach(env), newStatus(env), newFeatures(env),
		newAlgos(env), newPlan(env), newPisa(env), newP4(env), newMerge(env), newVersion(env),
		newAgent(env), newHistory(env), newCoordinator(env),
		keyring.New(keyring.Environment{Now: env.now, Print: env.printLines, Usage: usageError, Args: needArgs}),
	)
	return root
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usageError("unknown command %q: there are %s%s", args[0], strings.Join(names, ", "), didYouMean(args[0], names))
}

// betterFlagError adds the nearest flag to "unknown flag".
func betterFlagError(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	var names []string
	for word := range strings.FieldsSeq(cmd.Flags().FlagUsages()) {
		if strings.HasPrefix(word, "--") {
			names = append(names, word)
		}
	}
	return fmt.Errorf("%w%s", err, didYouMean("--"+name, names))
}

// needArgs checks the number of arguments; what names them in the message.
func needArgs(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageError("%s is missing", what)
		case most >= 0 && len(args) > most:
			return usageError("%q is one argument too many: at most %d (%s)", args[most], most, what)
		}
		return nil
	}
}
