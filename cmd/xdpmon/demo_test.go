package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// realWorld is the world with the real engine, clocks included.
func realWorld() *world {
	w := newWorld()
	w.engine, w.now, w.monotonic = realEngine(), time.Now, monotonic
	return w
}

// sum adds up a number over the windows of a demo; the last line is about all windows together and left out.
func sum(t *testing.T, windows []map[string]any, path ...string) (total float64) {
	t.Helper()
	for _, w := range windows {
		at := any(w)
		for _, name := range path {
			at = at.(map[string]any)[name]
		}
		total += at.(float64)
	}
	return total
}

// TestDemo runs real TCP through the link and holds the estimate against what the link measured.
func TestDemo(t *testing.T) {
	testutil.NeedRoot(t)
	w := realWorld()
	ended := make(chan int)
	go func() { ended <- w.run("demo", "--duration", "0", "--window", "1s") }()
	answers := func() float64 { // so far; the last line may be half written
		text := w.out.String()
		text = text[:strings.LastIndexByte(text, '\n')+1]
		if strings.Count(text, "\n") < 2 {
			return 0
		}
		return sum(t, lines(t, text)[1:], "truth", "delay_ns", "count")
	}
	waitFor(t, "the end of 2,000 handshakes", func() bool { return answers() >= 2000 })
	w.signal <- os.Interrupt
	if code := <-ended; code != exitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	all := lines(t, w.out.String())
	windows, summary := all[1:len(all)-1], all[len(all)-1]
	seen, answered := sum(t, windows, "report", "responses"), sum(t, windows, "truth", "delay_ns", "count")
	if all[0]["run"] == nil || answered < 2000 || seen < 0.998*answered || seen > 1.002*answered {
		t.Errorf("the hook saw %v SYN-ACKs, the link sent %v", seen, answered)
	}
	// 256 entries evict an eighth of these handshakes, so the deviation of what is estimated from them is below 1 %.
	errors := summary["error"].(map[string]any)["delay_ns"].(map[string]any)
	for _, name := range []string{"count", "p50", "p90"} {
		if e := errors[name].(float64); e < -0.08 || e > 0.08 {
			t.Errorf("%s is off by %v: %v", name, e, summary["error"])
		}
	}
	if evicted := summary["lost"].(map[string]any)["evicted"].(float64); evicted < 50 {
		t.Errorf("%v requests were evicted: there was nothing to correct", evicted)
	}
}

// TestDemoEndsOnASignal prints what it has.
func TestDemoEndsOnASignal(t *testing.T) {
	testutil.NeedRoot(t)
	w := realWorld()
	ended := make(chan int)
	go func() { ended <- w.run("demo", "--output", "json") }()
	waitFor(t, "the first window", func() bool { return strings.Count(w.out.String(), "\n") >= 2 })
	w.signal <- os.Interrupt
	select {
	case code := <-ended:
		if code != exitDone {
			t.Errorf("exit code %d: %s", code, w.err.String())
		}
	case <-time.After(patience):
		t.Fatalf("it did not end within %v", patience)
	}
	all := lines(t, w.out.String())
	last := all[len(all)-1]
	if last["window"].(map[string]any)["last"] != true || last["truth"] == nil {
		t.Errorf("last line %v", last)
	}
}

func TestDemoChoosesItsDefaults(t *testing.T) {
	o := demoOptions{selection: &selection{set: []string{"fridge.fridges=64@1"}}}
	o.choose([]string{"fridge,other"})
	if got := strings.Join(o.selection.set, " "); got != "fridge.fridges=64@1 fridge.legs=false" {
		t.Errorf("set %q", got)
	}
	if got := strings.Join(o.selection.algorithms, " "); got != "fridge other" {
		t.Errorf("algorithms %q", got)
	}
}

func event(flags uint8, port uint16, seq, ack uint32, arrived, sent int64) emulator.Event {
	p := packet.Packet{Valid: packet.IP | packet.TCP | packet.Ports, Proto: 6, TCPFlags: flags, Seq: seq, Ack: ack, SrcPort: port, DstPort: 80}
	if flags&packet.ACK != 0 {
		p.SrcPort, p.DstPort = 80, port
	}
	return emulator.Event{Packet: p, Fate: emulator.Passed, Arrived: arrived, Sent: sent}
}

// TestTruth: a repeated SYN does not restart the clock, an answer counts in the window that it left in, and sums grow.
func TestTruth(t *testing.T) {
	tr := newTruth(1000)
	tr.request(event(packet.SYN, 1, 10, 0, 2000, 2100))
	tr.request(event(packet.SYN, 1, 10, 0, 5000, 5100)) // again
	tr.request(event(packet.SYN, 2, 20, 0, 3000, 3100))
	tr.request(event(packet.SYN, 3, 30, 0, 3000, 3100)) // never answered
	tr.request(event(packet.ACK, 4, 40, 1, 3000, 3100)) // no request
	tr.response(event(packet.SYN|packet.ACK, 1, 99, 11, 0, 9000))
	tr.response(event(packet.SYN|packet.ACK, 1, 99, 11, 0, 9500)) // again
	tr.response(event(packet.SYN|packet.ACK, 2, 99, 21, 0, 23000))
	tr.response(event(packet.SYN|packet.ACK, 5, 99, 51, 0, 9000)) // unknown
	if tr.total() != 2 || tr.waiting() != 1 {
		t.Errorf("%d answers, %d waiting; want 2, 1", tr.total(), tr.waiting())
	}
	estimate := report.Distribution{Name: "delay_ns", Unit: report.Nanosecond, Count: 1,
		Quantiles: []report.Quantile{{Name: "p50", Q: 0.5, Value: 7700, Defined: true}},
		Buckets:   []report.Bucket{{Upper: 7600, Cumulative: 0}, {Upper: 7800, Cumulative: 1}}}
	window := func(start, end int64, last bool) report.Line {
		return report.Line{Algorithm: "a", Window: report.Window{Start: start, End: end, Last: last}, Packets: report.Packets{Seen: 5},
			Lost: map[string]uint64{"evicted": 1}, Report: report.Body{Distributions: []report.Distribution{estimate}}}
	}
	first, none := tr.beside(window(0, 10000, false))
	if none != nil || first.Truth.Distributions[0].Quantiles[0].Value != 7000 {
		t.Fatalf("first window: %+v, %+v", first, none)
	}
	second, all := tr.beside(window(10000, 30000, true))
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
	if got, summary := newTruth(0).beside(l); got.Truth != nil || summary != nil {
		t.Errorf("got %+v, %+v", got, summary)
	}
}
