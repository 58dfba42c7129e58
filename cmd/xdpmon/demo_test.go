package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/staged"
	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/windows"
	"github.com/xdpmon/xdpmon/demo/incidents"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
)

// realWorld is the world with the real engine, clocks included.
func realWorld() *world {
	w := newWorld()
	w.engine, w.now, w.monotonic = realEngine(), time.Now, hostclock.Now
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
	if code := <-ended; code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	all := lines(t, w.out.String())
	windows, summary := all[1:len(all)-1], all[len(all)-1]
	seen, sent, answered := sum(t, windows, "report", "responses"), sum(t, windows, "truth", "responses"), sum(t, windows, "truth", "delay_ns", "count")
	if all[0]["run"] == nil || answered < 2000 || sent < answered || seen < 0.998*sent || seen > 1.002*sent {
		t.Errorf("the hook saw %v SYN-ACKs, the link sent %v for %v handshakes", seen, sent, answered)
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
		if code != cli.ExitDone {
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

// TestDemoOfIncidents: with a page it stages incidents unless algorithms are named, and then flags of handshakes are refused.
func TestDemoOfIncidents(t *testing.T) {
	for _, args := range [][]string{
		{"--incidents", "--rate", "10/s"}, {"--listen", "127.0.0.1:0", "--median", "2ms"}, {"--incidents", "--set", "fridge.match=dns"}, {"fridge", "--incidents"},
	} {
		w := newWorld()
		if code := w.run(append([]string{"demo"}, args...)...); code != cli.ExitUsage || !strings.Contains(w.err.String(), "incidents") {
			t.Errorf("%v: exit code %d: %s", args, code, w.err.String())
		}
	}
	for _, p := range staged.Passes() {
		s := selection{algorithms: p.Algorithms, set: p.Set, hash: &cli.Enum[algo.Hash]{Value: algo.HashFast}, windows: windows.Lengths{All: time.Second}, interfaces: 1}
		if _, err := s.resolve(false); err != nil {
			t.Errorf("instance %s: %v", p.Name, err)
		}
	}
	if lines := staged.Timetable(); len(lines) != len(incidents.All)+2 || !strings.Contains(lines[1], "00:30  "+string(incidents.All[0].Kind)) {
		t.Errorf("timetable %q", lines)
	}
}
