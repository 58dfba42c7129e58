package fridge

import (
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func (l *load) body(options []option) *report.Body {
	best := options[0]
	for _, o := range options[1:] {
		if o.worst() < best.worst() {
			best = o
		}
	}
	slots, _ := layout.Totals(best.config.parts)
	b := &report.Body{Values: []report.Value{
		{Name: "fridges", Value: best.text, Kind: report.Info},
		{Name: "resolution", Value: int64(1) << best.config.mantissa, Kind: report.Info, Help: "delay bins an octave"},
		{Name: "correction", Value: best.correction(), Kind: report.Info},
		{Name: "entries", Value: int64(slots), Unit: report.Count},
		{Name: "register_bytes", Value: best.bytes, Unit: report.Bytes, Help: "all arrays, both banks, all CPUs"},
		{Name: "histogram_bytes", Value: best.histogram, Unit: report.Bytes, Help: "of them for histograms"},
		{Name: "answers", Value: l.rate * l.answered * l.window, Unit: report.Count, Help: "to be expected in a window"},
		{Name: "within_longest", Value: l.rate * l.longest, Unit: report.Count, Help: "requests within the longest delay"},
	}}
	b.Tables = []report.Table{optionTable(options)}
	b.Notes = l.notes(best)
	return b
}

func optionTable(options []option) report.Table {
	t := report.Table{Name: "options", Title: "what to expect (95 % of the windows are nearer than that)", Columns: []report.Column{
		{Name: "fridges", Label: true, Help: "entries@probability:share"},
		{Name: "correction"},
		{Name: "resolution", Help: "delay bins an octave"},
		{Name: "register_bytes", Unit: report.Bytes},
		{Name: "p50_error", Unit: report.Ratio}, {Name: "p95_error", Unit: report.Ratio}, {Name: "p99_error", Unit: report.Ratio},
	}}
	for _, o := range options {
		t.Rows = append(t.Rows, []any{o.text, o.correction(), int64(1) << o.config.mantissa, o.bytes, o.errors[0], o.errors[1], o.errors[2]})
	}
	return t
}

func (l *load) notes(best option) []string {
	notes := []string{
		"use it: xdpmon attach IFACE --algo fridge " + best.settings(),
		fmt.Sprintf("assumed: %s of the requests are answered, delays are spread evenly on a logarithmic axis from %s to %s, a report adds up %s; "+
			"--extra answered=, min-delay=, window= change that.", report.Human(l.answered, report.Ratio),
			report.Human(l.shortest, report.Nanosecond), report.Human(l.longest, report.Nanosecond), report.Human(l.window, report.Nanosecond)),
		fmt.Sprintf("inside of a delay bin, %s wide, percentiles are interpolated; an eighth of that is part of the error.",
			report.Human(best.config.binWidth(), report.Ratio)),
	}
	if best.worst() > 0.1 {
		notes = append(notes, "more memory or a longer window makes it more exact: the error falls with the root of either.")
	}
	return notes
}

// settings are the flags that choose the option.
func (o option) settings() string {
	return fmt.Sprintf("--set fridge.fridges=%s --set fridge.resolution=%d --set fridge.correction=%s", o.text, 1<<o.config.mantissa, o.correction())
}
