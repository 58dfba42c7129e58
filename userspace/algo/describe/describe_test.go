package describe

import (
	"reflect"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func described() *algo.Descriptor {
	return &algo.Descriptor{Name: "it", Summary: "what it is", Paper: "A. Author, 2020", Doc: "A first paragraph that says much of it, in more words than fit into a line of forty.\n\nA second.\n",
		Lost: map[string]string{"late": "what came too late, of which there may be more than a line of forty says", "early": "what came too early"},
		Params: []algo.Param{
			{Key: "n", Type: algo.Int, Default: "4", Min: "1", Max: "9", Unit: "cells", Help: "how many."},
			{Key: "x", Type: algo.Float, Default: "1/2", Min: "0", Help: "a share"},
			{Key: "t", Type: algo.Duration, Default: "1s", Max: "1m", Help: "a time"},
			{Key: "c", Type: algo.Enum, Default: "a", Choices: []string{"a", "b"}, Help: "one of two"},
			{Key: "s", Type: algo.Size, Default: "1kB", Help: "a size"},
			{Key: "b", Type: algo.Bool, Default: "true", Help: "a switch"},
			{Key: "w", Type: algo.String, Default: "", Help: "a text"},
		}}
}

// An algorithm is described to people: every parameter with what it may be, lines no longer than a terminal's.
func TestLines(t *testing.T) {
	want := `it: what it is

A first paragraph that says much of it, in
more words than fit into a line of forty.

A second.

Paper: A. Author, 2020

Losses that it counts (lost, in every report):
  early: what came too early
  late: what came too late, of which there
      may be more than a line of forty says

Parameters (--set it.KEY=VALUE):
  n=4
      how many; integer, 1 to 9 cells
  x=1/2
      a share; number, at least 0
  t=1s
      a time; duration, at most 1m
  c=a
      one of two; choice: a, b
  s=1kB
      a size; size
  b=true
      a switch; true or false
  w=
      a text; text`
	if got := strings.Join(Lines(described(), report.Style{Width: 46}), "\n"); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	for _, width := range []int{0, 1, 200} {
		longest := 0
		for _, line := range Lines(described(), report.Style{Width: width}) {
			longest = max(longest, len(line))
		}
		if most := map[int]int{0: 80, 1: 46, 200: 200}[width]; longest > most {
			t.Errorf("width %d: a line has %d letters", width, longest)
		}
	}
	if wide := strings.Join(Lines(described(), report.Style{Width: 200}), "\n"); !strings.Contains(wide, "\n  late: what came too late, of which there may be more than a line of forty says\n") {
		t.Errorf("not as wide as a terminal:\n%s", wide)
	}
	bare := &algo.Descriptor{Name: "it", Summary: "s", Doc: "d"}
	if got := strings.Join(Lines(bare, report.Style{}), "\n"); got != "it: s\n\nd\n\nIt has no parameters." {
		t.Errorf("%q", got)
	}
}

// planner is a configuration that can be planned.
type planner struct{ algo.Config }

func (planner) Plan(algo.PlanArgs) (*report.Body, error) { return nil, nil }

// ... and to programs.
func TestJSON(t *testing.T) {
	d := described()
	got := JSON(d)
	if got.Name != "it" || got.Summary != d.Summary || got.Paper != d.Paper || got.Doc != d.Doc || !reflect.DeepEqual(got.Lost, d.Lost) || got.Plan || got.P4 || len(got.Params) != len(d.Params) {
		t.Errorf("%+v", got)
	}
	if want := (Param{Key: "n", Type: "integer", Default: "4", Min: "1", Max: "9", Unit: "cells", Help: "how many."}); !reflect.DeepEqual(got.Params[0], want) {
		t.Errorf("%+v", got.Params[0])
	}
	d.Config = algo.Typed(func(algo.Values, algo.Setup) (planner, error) { return planner{}, nil })
	if got := JSON(d); !got.Plan || got.P4 {
		t.Errorf("%+v", got)
	}
}
