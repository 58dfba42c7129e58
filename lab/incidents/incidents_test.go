package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// Three incidents at the same time, each in its own network, are found live and in captures of them, and nothing else is. Whether they are found soon is
// for `make incidents`: other tests run beside this one.
func TestIncidents(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.NeedTool(t, "tshark")
	program := filepath.Join(t.TempDir(), "xdpmon")
	build := exec.Command(".ci/go", "build", "-o", program, "./cmd/xdpmon")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build xdpmon: %v\n%s", err, out)
	}
	for _, in := range incidents {
		if in.name != "dns-silent" && in.name != "network-slow-servers" && in.name != "loss-after" {
			continue
		}
		t.Run(in.name, func(t *testing.T) {
			t.Parallel()
			once(t, in, program)
		})
	}
}

func once(t *testing.T, in incident, program string) {
	times := timing{2 * time.Second, 13 * time.Second, 8 * time.Second}
	var live answer
	p, err := play(t.Context(), in, 1, times, t.TempDir(), checkLive(program, times, &live))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	read, err := checkCapture(t.Context(), program, p.capture, times, p.staged)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		where  string
		judged judged
		answer *answer
	}{{"live", judgeLive(p.staged, &live, time.Now(), times.window), &live}, {"in the capture", judgeCapture(p.staged, p.facts, &read), &read}} {
		if c.judged.clean() {
			continue
		}
		t.Errorf("%s, %s: missed %v, wrong %d", p.staged.what, c.where, c.judged.missed, len(c.judged.wrong))
		for _, f := range c.answer.began {
			t.Log(f.line)
		}
	}
}
