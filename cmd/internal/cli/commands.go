package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/userspace/nearest"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Execute runs the command line of a program and returns its exit code: code maps an error to an exit code, remedy adds to its message.
func Execute(root *cobra.Command, stderr io.Writer, code func(error) int, remedy func(error) string) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd == root { // the root command does not have the flags of a misspelt command
			if unknown := UnknownCommand(root, cmd.Flags().Args()); unknown != nil {
				return unknown
			}
		}
		return AsUsage(betterFlagError(cmd, err))
	})
	cmd, err := root.ExecuteC()
	if err == nil {
		return ExitDone
	}
	n := code(err)
	if n == ExitFound { // nothing failed, and the findings have been printed
		return n
	}
	fmt.Fprintf(stderr, "%s: %s%s\n", root.Name(), report.Printable(distinctLines(err.Error())), remedy(err))
	if n == ExitUsage {
		fmt.Fprintf(stderr, "See %q.\n", strings.TrimSpace(cmd.CommandPath())+" --help")
	}
	return n
}

// distinctLines drops repeated lines: several steps often return the same cause.
func distinctLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// UnknownCommand refuses arguments of a command that has commands.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return UsageError("unknown command %q: there are %s%s", args[0], strings.Join(names, ", "), nearest.Hint(args[0], names))
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
	return fmt.Errorf("%w%s", err, nearest.Hint("--"+name, names))
}

// NeedArgs checks the number of arguments; what names them in the message.
func NeedArgs(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return UsageError("%s is missing", what)
		case most >= 0 && len(args) > most:
			return UsageError("%q is one argument too many: at most %d (%s)", args[most], most, what)
		}
		return nil
	}
}
