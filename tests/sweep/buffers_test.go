package sweep

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Every packet of a long window is replayed once, in its order, though it fills several of the driver's buffers.
func TestReplayFillsBuffers(t *testing.T) {
	testutil.NeedRoot(t)
	d, err := algo.Lookup("rtt-array")
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	const many = 12_000 // more than 3 MiB, in buffers of one
	one := mixedFrames(t, time.Second)[0]
	one.Data = append(bytes.Clone(one.Data), make([]byte, 240)...)
	one.Len = max(one.Len, len(one.Data))
	all := make(frames, many)
	for i := range all {
		all[i] = one
		all[i].Time += int64(i) * 1000
	}
	seen := uint64(0)
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Proven: true, Window: time.Hour, Seed: 7, Emit: func(l report.Line) error { seen += l.Packets.Seen; return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "many", all.source(), nil); err != nil {
		t.Fatal(err)
	}
	if seen != many {
		t.Errorf("%d packets of %d were replayed", seen, many)
	}
}
