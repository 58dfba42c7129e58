package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func newAlgos(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "algos [NAME]", Short: "List the algorithms, or explain one and its parameters",
		Long:              "Without a name: one line for each algorithm. With a name: what it measures and how, and its parameters for --set.",
		Example:           "  xdpmon algos\n  xdpmon algos fridge\n  xdpmon algos --json",
		Args:              needArgs(0, 1, "the name of an algorithm"),
		ValidArgsFunction: completeName,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return listAlgorithms(env, *asJSON)
		}
		d, err := lookup(args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return env.printJSON(describeAlgorithm(d))
		}
		return env.printLines(algorithmLines(d, env.style())...)
	}
	return cmd
}

// completeName completes one algorithm's name.
func completeName(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeAlgorithms(""), cobra.ShellCompDirectiveNoFileComp
}

func listAlgorithms(env *environment, asJSON bool) error {
	if asJSON {
		for _, d := range algo.All() {
			if err := env.printJSON(describeAlgorithm(d)); err != nil {
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

// algorithmJSON is an algorithm as `algos --json` writes it.
type algorithmJSON struct {
	Name    string            `json:"name"`
	Summary string            `json:"summary"`
	Paper   string            `json:"paper"`
	Doc     string            `json:"doc"`
	Params  []paramJSON       `json:"params"`
	Lost    map[string]string `json:"lost"` // what each kind below "lost" counts
	Plan    bool              `json:"plan"` // `xdpmon plan NAME` works
	P4      bool              `json:"p4"`   // `xdpmon p4` works
}

type paramJSON struct {
	Key     string   `json:"key"`
	Type    string   `json:"type"`
	Default string   `json:"default"`
	Choices []string `json:"choices,omitempty"`
	Min     string   `json:"min,omitempty"`
	Max     string   `json:"max,omitempty"`
	Unit    string   `json:"unit,omitempty"`
	Help    string   `json:"help"`
}

func describeAlgorithm(d *algo.Descriptor) algorithmJSON {
	a := algorithmJSON{Name: d.Name, Summary: d.Summary, Paper: d.Paper, Doc: d.Doc, Params: []paramJSON{}, Lost: d.Lost, Plan: d.Plan != nil, P4: d.P4 != nil}
	for _, p := range d.Params {
		a.Params = append(a.Params, paramJSON{Key: p.Key, Type: typeWord(p.Type), Default: p.Default, Choices: p.Choices,
			Min: p.Min, Max: p.Max, Unit: p.Unit, Help: p.Help})
	}
	return a
}

func typeWord(t algo.Type) string {
	switch t {
	case algo.Int:
		return "integer"
	case algo.Float:
		return "number"
	case algo.Enum:
		return "choice"
	case algo.Duration:
		return "duration"
	case algo.Size:
		return "size"
	case algo.Bool:
		return "true or false"
	}
	return "text"
}

func algorithmLines(d *algo.Descriptor, style report.Style) []string {
	lines := []string{d.Name + ": " + d.Summary, ""}
	for _, paragraph := range strings.Split(strings.TrimSpace(d.Doc), "\n\n") {
		lines = append(lines, append(report.Wrap(paragraph, style), "")...)
	}
	if d.Paper != "" {
		lines = append(lines, "Paper: "+d.Paper, "")
	}
	if len(d.Lost) > 0 {
		lines = append(lines, "What it can lose, as every report says (lost):")
		for _, kind := range slices.Sorted(maps.Keys(d.Lost)) {
			lines = append(lines, indented(kind+": "+d.Lost[kind], 2, 6, style)...)
		}
		lines = append(lines, "")
	}
	if len(d.Params) == 0 {
		return append(lines, "It has no parameters.")
	}
	lines = append(lines, "Parameters (--set "+d.Name+".KEY=VALUE):")
	for _, p := range d.Params {
		lines = append(lines, fmt.Sprintf("  %s=%s", p.Key, p.Default))
		lines = append(lines, indented(paramText(p), 6, 6, style)...)
	}
	return lines
}

// indented wraps a text and indents its first line and the others.
func indented(text string, first, others int, style report.Style) []string {
	lines := report.Wrap(text, report.Style{Width: max(40, styleWidth(style)-others)})
	for i := range lines {
		lines[i] = strings.Repeat(" ", others) + lines[i]
	}
	if len(lines) > 0 {
		lines[0] = lines[0][others-first:]
	}
	return lines
}

func styleWidth(s report.Style) int {
	if s.Width == 0 {
		return 80
	}
	return s.Width
}

// paramText says what a parameter is, and what it may be.
func paramText(p algo.Param) string {
	text := strings.TrimSuffix(p.Help, ".") + "; " + typeWord(p.Type)
	switch {
	case len(p.Choices) > 0:
		text += ": " + strings.Join(p.Choices, ", ")
	case p.Min != "" && p.Max != "":
		text += fmt.Sprintf(", %s to %s", p.Min, p.Max)
	case p.Min != "":
		text += ", at least " + p.Min
	case p.Max != "":
		text += ", at most " + p.Max
	}
	if p.Unit != "" {
		text += " " + p.Unit
	}
	return text
}
