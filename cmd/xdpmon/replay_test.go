package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

// TestReplayOfRealPackets covers the whole path: capture, programs in the kernel, estimator, JSON.
func TestReplayOfRealPackets(t *testing.T) {
	testutil.NeedRoot(t)
	capture := builder.Handshakes(t, 2000)
	file := filepath.Join(t.TempDir(), "handshakes.pcap")
	if err := os.WriteFile(file, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"--algo", "fridge", "--truth", "--set", "fridge.fridges=256@1"}
	w := realWorld()
	if code := w.run(append([]string{"replay", file}, arguments...)...); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	all := lines(t, w.out.String())
	delays := all[1]["report"].(map[string]any)["delay_ns"].(map[string]any)
	if p50, count := delays["p50"].(float64), delays["count"].(float64); math.Abs(p50/50e6-1) > 0.1 || math.Abs(count/2000-1) > 0.1 {
		t.Errorf("p50 %v ns of 2000 delays from 1 to 100 ms, count %v", p50, count)
	}
	if truth := all[1]["truth"].(map[string]any)["delay_ns"].(map[string]any)["count"]; truth != 2000.0 {
		t.Errorf("true count %v, want 2000", truth)
	}

	again := realWorld()
	again.stdin = bytes.NewReader(capture)
	if code := again.run(append([]string{"replay", "-"}, arguments...)...); code != cli.ExitDone {
		t.Fatalf("standard input: exit code %d: %s", code, again.err.String())
	}
	first, second := body(w), body(again)
	if first != second {
		t.Errorf("the same packets and seed give\n%s\nand from standard input\n%s", first, second)
	}
}

// body is the window's line from its report on: before it stands the capture's name.
func body(w *world) string {
	_, after, _ := strings.Cut(w.out.String(), `"report":`)
	return after
}

func TestReplayOfNothing(t *testing.T) {
	testutil.NeedRoot(t)
	for name, text := range map[string]string{"empty": "", "no capture": strings.Repeat("x", 100)} {
		w := realWorld()
		w.stdin = strings.NewReader(text)
		if code := w.run("replay", "-", "--algo", "fridge"); code != cli.ExitFailed || w.err.String() == "" {
			t.Errorf("%s: exit code %d, %q", name, code, w.err.String())
		}
	}
	w := realWorld()
	if code := w.run("replay", "/does/not/exist.pcap", "--algo", "fridge"); code != cli.ExitFailed || !strings.Contains(w.err.String(), "/does/not/exist.pcap") {
		t.Errorf("missing file: exit code %d, %q", code, w.err.String())
	}
}
