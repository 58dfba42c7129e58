package precision

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// every selects one of so many packets of a model.
type every struct {
	traffic.Model
	part, of, n int
}

// Next implements traffic.Model.
func (e *every) Next(p *packet.Packet) bool {
	for e.Model.Next(p) {
		if e.n++; e.n%e.of == e.part {
			return true
		}
	}
	return false
}

func snapshotOf(t *testing.T, set map[string]string, m traffic.Model, seed uint64) *snapshot.Snapshot {
	t.Helper()
	var line report.Line
	cfg := session.Config{Algorithms: []session.Selected{chosen(t, set)}, Seed: seed, Snapshots: true,
		Emit: func(l report.Line) error { line = l; return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(m), nil); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Decode(line.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// For flows whose packets alternate between two hosts with different seeds, merged intervals and bounds contain the truth as those of one host do.
func TestMergedIntervalsHold(t *testing.T) {
	testutil.NeedRoot(t)
	set := map[string]string{"top": "200", "entries": "512"}
	rows, held, bounds, bounded := 0, 0, 0, 0
	for seed := range uint64(2) {
		stream := Sizes{Flows: 5000, Packets: 30000, Offset: 5, Skew: 0.9, Drawn: true, Seed: seed}.New()
		a := snapshotOf(t, set, &every{Model: stream.Model(), part: 0, of: 2}, 2*seed+1)
		b := snapshotOf(t, set, &every{Model: stream.Model(), part: 1, of: 2}, 2*seed+2)
		table := snapshottest.Report(t, snapshottest.Merge(t, a, b)).Body.Tables[0]
		at := len(Spec.Columns())
		known := map[string]float64{}
		for key, n := range stream.Truth() {
			known[fmt.Sprint(Spec.Cells(key))] = n
		}
		for _, r := range table.Rows {
			truth, listed := known[fmt.Sprint(r[:at])]
			if !listed {
				t.Fatalf("%v is in no truth", r[:at])
			}
			if low, most := r[at+4].(float64), r[at+7].(float64); math.IsNaN(low) {
				bounds++
				bounded += yes(r[at+6].(float64) <= truth && truth <= most)
			} else {
				rows++
				held += yes(low <= truth && truth <= r[at+5].(float64))
			}
			if r[at+6].(float64) > truth {
				t.Errorf("%v are called counted, and there were %g", r[at+6], truth)
			}
		}
	}
	share, bound := float64(held)/float64(rows), float64(bounded)/float64(bounds)
	t.Logf("%d intervals, %.3f hold, %d bounds, %.3f", rows, share, bounds, bound)
	if share < 0.91 || bound < 0.95 || rows < 200 || bounds < 20 {
		t.Errorf("%.3f of %d intervals hold the truth, %.3f of %d bounds", share, rows, bound, bounds)
	}
}
