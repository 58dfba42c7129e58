package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// style holds the capabilities of the terminal at stdout.
func (env *environment) style() report.Style {
	width := 0
	if env.isTerminal(env.stdout) {
		width, _ = env.size()
	}
	return report.Style{Width: width, Unicode: env.utf8()}
}

// utf8 follows the locale as C programs do: the first of the three variables that is set decides.
func (env *environment) utf8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(env.getenv(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

// sink makes the output that --output selects. auto is a table on a terminal and JSON in a pipe; a table redraws in place when the
// run is live and the terminal can.
func (env *environment) sink(output string, live bool, style report.Style) report.Sink {
	terminal := env.isTerminal(env.stdout)
	switch {
	case output == "json" || output == "auto" && !terminal:
		return report.NewJSON(env.stdout, env.stderr)
	case live && terminal && env.getenv("TERM") != "dumb":
		return report.NewScreen(report.ScreenOptions{
			Out: env.stdout, Notices: env.stderr, Style: style, Size: env.size, Now: env.now, Footer: "Ctrl-C ends",
		})
	}
	return report.NewPlain(env.stdout, env.stderr, style)
}

func addOutput(cmd *cobra.Command) *cli.Enum[string] {
	return cli.AddEnum(cmd, "output", "auto", "auto is a table on a terminal and JSON lines in a pipe", "auto", "table", "json")
}

// answer is the form in which a verb that answers once does so.
type answer struct {
	env    *environment
	output *cli.Enum[string]
	json   bool // --json, before 0.1.0; removed in 0.2.0
}

// addAnswer adds --output to such a verb. Its default is text in a pipe, too.
func addAnswer(env *environment, cmd *cobra.Command) *answer {
	a := &answer{env: env, output: cli.AddEnum(cmd, "output", "table", "text, or one JSON object a line", "table", "json")}
	cmd.Flags().BoolVar(&a.json, "json", false, "as --output json")
	if err := cmd.Flags().MarkHidden("json"); err != nil {
		panic(err) // the flag exists
	}
	return a
}

// asJSON reports whether JSON was requested, and warns of the deprecated flag.
func (a *answer) asJSON() bool {
	if a.json {
		fmt.Fprintln(a.env.stderr, "xdpmon: --json will be removed in version 0.2.0: use --output json")
	}
	return a.json || a.output.Value == "json"
}

// printJSON writes one value as one line.
func (env *environment) printJSON(value any) error {
	enc := json.NewEncoder(env.stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

func (env *environment) printLines(lines ...string) error {
	if _, err := fmt.Fprintln(env.stdout, report.Printable(strings.Join(lines, "\n"))); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
