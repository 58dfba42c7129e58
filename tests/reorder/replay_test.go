// Package reorder tests reorder through its bytecode: what it finds in modelled traffic, and what it must not call
// reordering.
package reorder

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/reorder"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// replay runs reorder over frames and returns its lines, one a window.
func replay(tb testing.TB, src capture.Source, cfg session.Config, set map[string]string) []report.Line {
	tb.Helper()
	testutil.NeedRoot(tb)
	d, err := algo.Lookup(reorder.Name)
	if err != nil {
		tb.Fatal(err)
	}
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		tb.Fatal(err)
	}
	var lines []report.Line
	cfg.Algorithms = []session.Selected{{Descriptor: d, Values: values}}
	cfg.Truth = true
	cfg.Emit = func(l report.Line) error { lines = append(lines, l); return nil }
	if err := session.ReplaySource(context.Background(), cfg, "model", src, nil); err != nil {
		tb.Fatal(err)
	}
	for _, l := range lines {
		if _, err := json.Marshal(l); err != nil { // a name that is there twice
			tb.Fatal(err)
		}
	}
	return lines
}

// number reads a value of a body.
func number(tb testing.TB, b report.Body, name string) float64 {
	tb.Helper()
	for _, v := range b.Values {
		if v.Name == name {
			if f, ok := report.Number(v.Value); ok {
				return f
			}
		}
	}
	tb.Fatalf("the report has no number %s", name)
	return 0
}

func model(tb testing.TB, o traffic.ReorderOptions) capture.Source {
	tb.Helper()
	m, err := traffic.NewReorder(o)
	if err != nil {
		tb.Fatal(err)
	}
	return traffic.Frames(m)
}
