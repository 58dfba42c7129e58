package scene

import (
	"testing"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func event(flags uint8, port uint16, seq, ack uint32, arrived, sent int64) *emulator.Event {
	p := packet.Packet{Time: arrived, Valid: packet.IP | packet.TCP | packet.Ports, Proto: 6, TCPFlags: flags, Seq: seq, Ack: ack, SrcPort: port, DstPort: 80}
	if flags&packet.ACK != 0 {
		p.SrcPort, p.DstPort = 80, port
	}
	return &emulator.Event{Packet: p, Fate: emulator.Passed, Arrived: arrived, Sent: sent}
}

// TestTruth: a repeated SYN does not restart the clock, an answer counts in the window that it left in, and sums grow.
func TestTruth(t *testing.T) {
	tr := NewTruth(1000)
	tr.request(&event(packet.SYN, 1, 10, 0, 2000, 2100).Packet, nil)
	tr.request(&event(packet.SYN, 1, 10, 0, 5000, 5100).Packet, nil) // again
	tr.request(&event(packet.SYN, 2, 20, 0, 3000, 3100).Packet, nil)
	tr.request(&event(packet.SYN, 3, 30, 0, 3000, 3100).Packet, nil) // never answered
	tr.request(&event(packet.ACK, 4, 40, 1, 3000, 3100).Packet, nil) // no request
	tr.response(*event(packet.SYN|packet.ACK, 1, 99, 11, 0, 9000))
	tr.response(*event(packet.SYN|packet.ACK, 1, 99, 11, 0, 9500)) // again
	tr.response(*event(packet.SYN|packet.ACK, 2, 99, 21, 0, 23000))
	tr.response(*event(packet.SYN|packet.ACK, 5, 99, 51, 0, 9000)) // unknown
	if tr.Total() != 2 || tr.waiting() != 1 {
		t.Errorf("%d answers, %d waiting; want 2, 1", tr.Total(), tr.waiting())
	}
	estimate := report.Distribution{Name: "delay_ns", Unit: report.Nanosecond, Count: 1,
		Quantiles: []report.Quantile{{Name: "p50", Q: 0.5, Value: 7700, Defined: true}},
		Buckets:   []report.Bucket{{Upper: 7600, Cumulative: 0}, {Upper: 7800, Cumulative: 1}}}
	window := func(start, end int64, last bool) report.Line {
		return report.Line{Algorithm: "a", Window: report.Window{Start: start, End: end, Last: last}, Packets: report.Packets{Seen: 5},
			Lost: map[string]uint64{"evicted": 1}, Report: report.Body{Values: []report.Value{{Name: "responses", Value: uint64(3)}}, Distributions: []report.Distribution{estimate}}}
	}
	first, none := tr.Beside(window(0, 10000, false))
	if n := first.Truth.Values[0]; n.Name != "responses" || n.Value != uint64(3) { // one has no request, and one is repeated
		t.Errorf("the link sent %+v", n)
	}
	if none != nil || first.Truth.Distributions[0].Quantiles[0].Value != 7000 {
		t.Fatalf("first window: %+v, %+v", first, none)
	}
	second, all := tr.Beside(window(10000, 30000, true))
	if all == nil {
		t.Fatal("no line about all windows together after the last one")
	}
	if d := second.Truth.Distributions[0]; d.Count != 1 || d.Mean != 20000 {
		t.Errorf("second window: %+v", d)
	}
	if all.Window.Start != 0 || all.Window.End != 30000 || all.Packets.Seen != 10 || all.Lost["evicted"] != 2 ||
		all.Truth.Distributions[0].Count != 2 || all.Report.Distributions[0].Count != 2 {
		t.Errorf("all windows: %+v", all)
	}
	if rows := all.Report.Tables[0].Rows; len(rows) != 2 || rows[1][0] != int64(30000) {
		t.Errorf("convergence %v", rows)
	}
}

func TestTruthLeavesOtherReportsAlone(t *testing.T) {
	l := report.Line{Algorithm: "flows", Report: report.Body{Values: []report.Value{{Name: "x", Value: int64(1)}}}}
	if got, summary := NewTruth(0).Beside(l); got.Truth != nil || summary != nil {
		t.Errorf("got %+v, %+v", got, summary)
	}
}

// TestTruthOfALateThread: an answer that the link reports after its window counts in the next one, for every algorithm.
func TestTruthOfALateThread(t *testing.T) {
	tr := NewTruth(0)
	tr.request(&event(packet.SYN, 1, 10, 0, 2000, 2100).Packet, nil)
	line := func(algorithm string, start, end int64) report.Line {
		return report.Line{Algorithm: algorithm, Window: report.Window{Start: start, End: end}, Report: report.Body{Distributions: []report.Distribution{{Name: "delay_ns"}}}}
	}
	count := func(l report.Line) float64 { window, _ := tr.Beside(l); return window.Truth.Distributions[0].Count }
	if n := count(line("a", 0, 10000)); n != 0 {
		t.Errorf("%v answers before any", n)
	}
	tr.response(*event(packet.SYN|packet.ACK, 1, 99, 11, 0, 9000))
	if n := count(line("b", 0, 10000)); n != 0 {
		t.Errorf("the second algorithm of a window has %v answers, the first had none", n)
	}
	for _, algorithm := range []string{"a", "b"} {
		if n := count(line(algorithm, 10000, 20000)); n != 1 {
			t.Errorf("%s has %v answers in the next window, want 1", algorithm, n)
		}
	}
}
