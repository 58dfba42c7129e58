package precision

import (
	"context"

	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// replayWithTruth runs one configuration over frames, with its oracle.
func replayWithTruth(c bytecode.Config, source capture.Source) (line report.Line, err error) {
	d, err := algo.Lookup(c.Algorithm)
	if err != nil {
		return line, err
	}
	v, err := algo.NewValues(d.Name, d.Params, c.Set)
	if err != nil {
		return line, err
	}
	cfg := session.Config{Seed: 1, Truth: true, Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Emit: func(l report.Line) error {
		line = l
		return nil
	}}
	return line, session.ReplaySource(context.Background(), cfg, "model", source, nil)
}
