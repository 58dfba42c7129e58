// Package describe formats an algorithm's descriptor, for people and for programs.
package describe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Algorithm is an algorithm in the output of `algos --output json`.
type Algorithm struct {
	Name    string            `json:"name"`
	Summary string            `json:"summary"`
	Paper   string            `json:"paper"`
	Doc     string            `json:"doc"`
	Params  []Param           `json:"params"`
	Lost    map[string]string `json:"lost"` // what each kind below "lost" counts
	Plan    bool              `json:"plan"` // `xdpmon plan NAME` works
	P4      bool              `json:"p4"`   // `xdpmon p4` works
}

// Param is a parameter.
type Param struct {
	Key     string   `json:"key"`
	Type    string   `json:"type"`
	Default string   `json:"default"`
	Choices []string `json:"choices,omitempty"`
	Min     string   `json:"min,omitempty"`
	Max     string   `json:"max,omitempty"`
	Unit    string   `json:"unit,omitempty"`
	Help    string   `json:"help"`
}

// JSON is the descriptor as written by --output json.
func JSON(d *algo.Descriptor) Algorithm {
	a := Algorithm{Name: d.Name, Summary: d.Summary, Paper: d.Paper, Doc: d.Doc, Params: []Param{}, Lost: d.Lost, Plan: algo.Implements[algo.Planner](d), P4: algo.Implements[algo.Twin](d)}
	for _, p := range d.Params {
		a.Params = append(a.Params, Param{Key: p.Key, Type: typeWord(p.Type), Default: p.Default, Choices: p.Choices,
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

// Lines is the descriptor as text.
func Lines(d *algo.Descriptor, style report.Style) []string {
	lines := []string{d.Name + ": " + d.Summary, ""}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(d.Doc), "\n\n") {
		lines = append(lines, append(report.Wrap(paragraph, style), "")...)
	}
	if d.Paper != "" {
		lines = append(lines, "Paper: "+d.Paper, "")
	}
	if len(d.Lost) > 0 {
		lines = append(lines, "Losses that it counts (lost, in every report):")
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

// indented wraps a text, with one indent for the first line and another for the rest.
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

// paramText describes a parameter: its help, default and range.
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
