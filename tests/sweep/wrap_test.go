package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Clocks in registers have few bits and count from boot: the answer must not depend on the time of the measurement. The same packets
// pass once without a wrap and once so that a clock of any number of bits, from 34 to 53 in nanoseconds, wraps in their middle.
// (Clocks that wrap within nine seconds do so in both.)
func TestClocksWrap(t *testing.T) {
	testutil.NeedRoot(t)
	const span = 4 * time.Second
	mixed := mixedFrames(t, span)
	forAll(t, func(t *testing.T, s session.Selected) {
		bits := 53
		if s.Descriptor.Name == "lean" {
			bits = 47 // retrans: for a second every 2^48 ns an empty record looks taken (docs/lean.md)
		}
		want := reportsAt(t, s, mixed, 71<<33-int64(span)/2)
		if got := reportsAt(t, s, mixed, 1<<bits-int64(span)/2); got != want {
			here, there := fromDifference(got, want)
			t.Errorf("...%s...\nelse ...%s...", here, there)
		}
	})
}

// reportsAt are the reports of packets that start at a time.
func reportsAt(t *testing.T, s session.Selected, all frames, start int64) string {
	t.Helper()
	moved := slices.Clone(all)
	for i := range moved {
		moved[i].Time += start
	}
	var text string
	cfg := session.Config{Algorithms: []session.Selected{s}, Window: 2500 * time.Millisecond, Seed: 7, Emit: func(l report.Line) error {
		l.Window = report.Window{}
		b, err := json.Marshal(l)
		text += string(b) + "\n"
		return err
	}}
	if err := session.ReplaySource(context.Background(), cfg, "mixed", moved.source(), nil); err != nil {
		t.Fatal(err)
	}
	return text
}

// mixedFrames are handshakes, flows that lose, reorder and wait, and prefixes with bad paths, from time 0.
func mixedFrames(t *testing.T, span time.Duration) frames {
	t.Helper()
	isp, err := traffic.NewISP(traffic.ISPOptions{Packets: 4000, Duration: span, Carrier: traffic.Handshake, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	lean, err := traffic.NewLean(traffic.LeanOptions{Packets: 6000, Flows: 300, Span: span, Heavy: 20, Victims: 5, Delay: 30 * time.Millisecond,
		Loss: .05, Late: .05, Again: .05, Repair: true, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	disorder, err := traffic.NewReorder(traffic.ReorderOptions{Packets: 6000, Flows: 300, Prefixes: 40, Span: span, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	var all frames
	for i, m := range []traffic.Model{isp, lean, disorder} {
		own := framesOf(t, m)
		if len(own) < 3000 {
			t.Fatalf("model %d has %d packets", i, len(own))
		}
		all = append(all, own...)
	}
	slices.SortStableFunc(all, func(a, b packet.Frame) int { return int(a.Time - b.Time) })
	return all
}

func framesOf(t *testing.T, m traffic.Model) (all frames) {
	t.Helper()
	source := traffic.Frames(m)
	defer source.Close()
	first := int64(-1)
	for {
		var f packet.Frame
		err := source.Next(&f)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(fmt.Errorf("model: %w", err))
		}
		if first < 0 {
			first = f.Time
		}
		f.Data = slices.Clone(f.Data)
		f.Time -= first
		all = append(all, f)
	}
}

// fromDifference cuts two texts to where they start to differ.
func fromDifference(a, b string) (string, string) {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	part := func(s string) string { return s[max(at-60, 0):min(at+120, len(s))] }
	return part(a), part(b)
}
