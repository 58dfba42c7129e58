package precision

import (
	"testing"

	"github.com/xdpmon/xdpmon/tests/eval"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// replayWithTruth runs one configuration over frames, with its oracle.
func replayWithTruth(t *testing.T, c eval.Config, source capture.Source) report.Line {
	t.Helper()
	d, err := algo.Lookup(c.Algorithm)
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, c.Set)
	if err != nil {
		t.Fatal(err)
	}
	var line report.Line
	cfg := session.Config{Seed: 1, Truth: true, Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Emit: func(l report.Line) error {
		line = l
		return nil
	}}
	if err := session.ReplaySource(t.Context(), cfg, "model", source, nil); err != nil {
		t.Fatal(err)
	}
	return line
}
