package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

func TestTextGolden(t *testing.T) {
	for name, c := range map[string]struct {
		line  Line
		style Style
	}{
		"table.golden":        {fixtureLine(), Style{Width: 80, Unicode: true}},
		"table-ascii.golden":  {fixtureLine(), Style{Width: 80}},
		"table-wide.golden":   {fixtureTruth(), Style{Width: 132, Unicode: true}},
		"table-truth.golden":  {fixtureTruth(), Style{Width: 80, Unicode: true}},
		"table-narrow.golden": {fixtureTruth(), Style{Width: 44}},
	} {
		t.Run(name, func(t *testing.T) {
			lines := Text(c.line, fixtureRun(), c.style)
			golden(t, name, []byte(strings.Join(lines, "\n")+"\n"))
		})
	}
}

// TestTextFits sweeps widths: no line is wider than the terminal, whatever has to be cut or left away.
func TestTextFits(t *testing.T) {
	for width := minWidth; width <= 200; width += 3 {
		for _, unicode := range []bool{false, true} {
			for _, l := range []Line{fixtureLine(), fixtureTruth(), {Algorithm: "empty"}} {
				for _, text := range Text(l, fixtureRun(), Style{Width: width, Unicode: unicode}) {
					if typeset.Length(text) > width {
						t.Fatalf("width %d: %d characters: %q", width, typeset.Length(text), text)
					}
					if !unicode && len(text) != typeset.Length(text) {
						t.Fatalf("without UTF-8: %q", text)
					}
				}
			}
		}
	}
}

func TestPlotDegenerate(t *testing.T) {
	for name, d := range map[string]Distribution{
		"empty":     {},
		"zero":      {Buckets: []Bucket{{0, 10}}},
		"one value": {Unit: Nanosecond, Buckets: []Bucket{{1e6, 0}, {1e6 + 1, 10}}},
		"infinite":  {Buckets: []Bucket{{1, 5}, {math.Inf(1), 10}}},
		"negative":  {Buckets: []Bucket{{-5, 5}, {5, 10}}},
	} {
		for _, line := range withPlot(nil, d, nil, Style{Unicode: true, Width: 63}) {
			if typeset.Length(line) > 63 {
				t.Errorf("%s: %q is too wide", name, line)
			}
		}
	}
}

func TestTableCountsOmittedRows(t *testing.T) {
	table := Table{Name: "wide"}
	row := []any{}
	for _, name := range []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta"} {
		table.Columns = append(table.Columns, Column{Name: name})
		row = append(row, strings.Repeat(name, 5))
	}
	for range 25 {
		table.Rows = append(table.Rows, row)
	}
	text := strings.Join(against{}.table(table, Style{Width: 50}), "\n")
	for _, want := range []string{"not shown (too narrow): delta, epsilon, zeta", "and 5 more"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestWrap(t *testing.T) {
	got := typeset.Wrap("one two three fourteenletters", 9, 2)
	want := []string{"one two", "  three", "  fourtee", "  nletter", "  s"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("wrap = %q, want %q", got, want)
	}
}

// A table whose names are needed whole gives up columns for them, and names only where no column is left.
func TestTableKeepsNames(t *testing.T) {
	tab := Table{Name: "alerts", Title: "Alerts", Limit: 5, Whole: true, Columns: []Column{{Name: "key", Label: true}, {Name: "count", Unit: Count},
		{Name: "time", Unit: Nanosecond}}, Rows: [][]any{{"src=2001:db8:0:1::1 dst=2001:db8:0:2::2", 1000, int64(5)}}}
	for width, want := range map[int]string{80: "::2", 52: "::2", 44: "…"} {
		text := strings.Join(BodyText(Body{Tables: []Table{tab}}, nil, nil, Style{Width: width, Unicode: true}), "\n")
		if !strings.Contains(text, want) || !strings.Contains(text, "1,000") || (width < 60) != strings.Contains(text, "not shown (too narrow): time") && width != 44 {
			t.Errorf("width %d:\n%s", width, text)
		}
	}
}

// A table states how many rows it omits, and nothing if it omits none.
func TestTableThatJustFits(t *testing.T) {
	table := Table{Name: "full", Columns: []Column{{Name: "alpha"}}}
	for range tableRows {
		table.Rows = append(table.Rows, []any{"x"})
	}
	if text := strings.Join(against{}.table(table, Style{Width: 50}), "\n"); strings.Contains(text, "more") {
		t.Errorf("%d rows of %d:\n%s", tableRows, tableRows, text)
	}
	table.Rows = append(table.Rows, []any{"x"})
	if text := strings.Join(against{}.table(table, Style{Width: 50}), "\n"); !strings.Contains(text, "and 1 more") {
		t.Errorf("a row is left out without a note:\n%s", text)
	}
}

// What counts bytes or packets of a window is shown by the second, too; JSON is what it was.
func TestRates(t *testing.T) {
	for unit, want := range map[Unit]string{Bytes: "8.00 Mbit/s", PacketUnit: "100 k/s"} {
		name := map[Unit]string{Bytes: "bytes", PacketUnit: "packets"}[unit]
		l := Line{Algorithm: "x", Window: Window{Start: 1e9, End: 11e9}, Report: Body{Tables: []Table{{Name: "flows", Title: "flows",
			Columns: []Column{{Name: "flow", Label: true}, {Name: name, Unit: unit, Rate: true}, {Name: "share", Unit: Ratio}},
			Rows:    [][]any{{"a", map[Unit]float64{Bytes: 10e6, PacketUnit: 1e6}[unit], 0.5}, {"b", nil, 0.1}}}}}}
		before, err := l.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(Text(l, Run{}, Style{Width: 100}), "\n")
		if !strings.Contains(text, want) || strings.Count(text, "/s") != 1 {
			t.Errorf("%s: no %s in\n%s", name, want, text)
		}
		if unit == Bytes { // where both do not fit, bits per second stay
			long := l
			long.Report.Tables = slices.Clone(l.Report.Tables)
			long.Report.Tables[0].Rows = [][]any{{strings.Repeat("a", 34), 10e6, 0.5}}
			narrow := strings.Join(Text(long, Run{}, Style{Width: 40}), "\n")
			if !strings.Contains(narrow, want) || strings.Contains(narrow, "bytes  ") {
				t.Errorf("narrow:\n%s", narrow)
			}
		}
		if after, err := l.MarshalJSON(); err != nil || string(after) != string(before) {
			t.Errorf("drawing has changed the line: %s", after)
		}
		if body := strings.Join(BodyText(l.Report, nil, nil, Style{Width: 100}), "\n"); strings.Contains(body, "/s") {
			t.Errorf("a body without a window has a rate:\n%s", body)
		}
	}
}

// People see what is to be first directly after a row's names, and a value together with its ends, in one cell.
func TestColumnsForPeople(t *testing.T) {
	table := Table{Name: "flows", Whole: true, Columns: []Column{{Name: "key", Label: true}, {Name: "count", Unit: Count},
		{Name: "share", Unit: Ratio, Low: "low", High: "high", Together: true, Promise: Bound}, {Name: "low", Unit: Ratio}, {Name: "high", Unit: Ratio},
		{Name: "total", Unit: Count, First: true}, {Name: "never", Unit: Count, First: true}}}
	row := func(key string, values ...any) { table.Rows = append(table.Rows, append([]any{key}, values...)) }
	row("a", int64(3), .047, .031, .069, int64(1188), math.NaN())
	row("b", int64(4), math.NaN(), math.NaN(), math.NaN(), math.NaN(), nil)
	line := fixtureLine()
	line.Report.Tables = []Table{table}
	text := strings.Join(Text(line, fixtureRun(), Style{Width: 100}), "\n")
	for _, want := range []string{"key  total  count  share               never", "a    1,188      3  4.7 % (3.1 .. 6.9)      -", "b        -      4  -                       -"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if text = strings.Join(Text(line, fixtureRun(), Style{Width: 44}), "\n"); !strings.Contains(text, "4.7 % (3.1 .. 6.9)\n") || !strings.Contains(text, "not shown (too narrow): never") {
		t.Errorf("narrow:\n%s", text)
	}
}
