package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// threeInterfaces are windows of two algorithms on an interface with traffic, and of one on two without.
func threeInterfaces() []Line {
	fridge, bare := fixtureLine(), fixtureLine()
	fridge.Report = fridge.Report.Answering("match_rate")
	bare.Algorithm, bare.Report = "bare", Body{Values: []Value{{Name: "asked_for", Value: 7, Answer: true}, {Name: "latency_evicted", Value: 9}},
		Tables: []Table{{Name: "bursts"}, {Name: "queries", Details: true, Rows: [][]any{{"x"}}, Columns: []Column{{Name: "query"}}}}}
	lines := []Line{fridge, bare}
	for _, name := range []string{"eth1", "evil\x1b[2J"} {
		l := fixtureLine()
		l.Identity, l.Packets = Identity{Instance: name, Interfaces: []string{name}}, Packets{}
		lines = append(lines, l)
	}
	return lines
}

var (
	slow = Finding{Key: "1", Severity: "warning", Text: "Slow network at 10.2.3.0/24"}
	dead = Finding{Key: "2", Severity: "critical", Text: "10.2.3.4 does not answer"}
)

// A brief table has findings first, the most severe first, interfaces without traffic in one line, and answers without details.
func TestBriefGolden(t *testing.T) {
	run := fixtureRun()
	for name, style := range map[string]Style{"brief.golden": {Width: 80, Unicode: true, Brief: true}, "brief-wide.golden": {Width: 200, Brief: true}} {
		text := briefBlocks(threeInterfaces(), foundLines([]Finding{slow, dead}, style), run, style)
		golden(t, name, []byte(strings.Join(text, "\n")+"\n"))
		for _, l := range text {
			if typeset.Length(l) > style.Width {
				t.Errorf("%d characters: %q", typeset.Length(l), l)
			}
		}
	}
}

// In a pipe the findings of a round precede its windows, those that began with its last window, too; they are repeated while they are open. Where nothing is
// found, that is stated; where nobody looks, not.
func TestBriefRounds(t *testing.T) {
	for _, looked := range []bool{true, false} {
		var out bytes.Buffer
		run := fixtureRun()
		run.Algorithms = []RunAlgorithm{{Name: "fridge"}, {Name: "bare"}}
		s := NewPlain(&out, &bytes.Buffer{}, Style{Width: 80, Brief: true, Findings: looked})
		if err := s.Start(run); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		show := func(lines ...Line) string {
			for _, l := range lines {
				if err := s.Line(l); err != nil {
					t.Fatal(err)
				}
			}
			defer out.Reset()
			return out.String()
		}
		lines := threeInterfaces()
		if got := show(lines[0]); got != "" {
			t.Errorf("half a round was written: %s", got)
		}
		if got := show(lines[1]); strings.Contains(got, "Nothing found.") != looked || !strings.Contains(got, "asked for 7") {
			t.Errorf("without findings: %s", got)
		}
		show(lines[0])
		if err := s.Finding(slow); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := show(lines[1]); !strings.HasPrefix(strings.TrimSpace(got), "warning: Slow network") || strings.Index(got, "match rate") < 10 {
				t.Errorf("with a finding: %s", got)
			}
			show(lines[0])
		}
		over := slow
		over.Ended = true
		if err := s.Finding(over); err != nil {
			t.Fatal(err)
		}
		if got := show(lines[1]); !strings.Contains(got, "warning, over: Slow") || strings.Count(got, "Slow") != 1 {
			t.Errorf("after its end: %s", got)
		}
		show(lines[0])
		if err := s.Close(); err != nil || !strings.Contains(out.String(), "match rate") {
			t.Errorf("the last, half round is lost: %v %s", err, out.String())
		}
	}
}

// On a small screen findings stay whole and first, whatever has to go.
func TestBriefScreen(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}, {40, 10}} {
		term := &fakeTerminal{width: size[0], height: size[1]}
		s := newFakeScreen(term, &bytes.Buffer{})
		s.opt.Style.Brief, s.opt.Style.Findings = true, true
		if err := s.Start(fixtureRun()); err != nil {
			t.Fatal(err)
		}
		for _, l := range threeInterfaces() {
			if err := s.Line(l); err != nil {
				t.Fatal(err)
			}
		}
		if frame := s.frame(size[1]); !slices.Contains(frame, "Nothing found.") {
			t.Errorf("the absence of findings is not written:\n%s", strings.Join(frame, "\n"))
		}
		for _, f := range []Finding{slow, dead} {
			if err := s.Finding(f); err != nil {
				t.Fatal(err)
			}
		}
		frame := s.frame(size[1])
		if len(frame) > size[1] || !strings.HasPrefix(frame[1], "critical: 10.2.3.4") || !strings.HasPrefix(frame[2], "warning: Slow network") || !strings.HasPrefix(frame[3], "No traffic on 2 of 3: eth1,") {
			t.Errorf("%v:\n%s", size, strings.Join(frame, "\n"))
		}
		s.Notice("attached at TC ingress")
		young := s.frame(size[1])
		term.now = term.now.Add(briefNotices + time.Second)
		old := s.frame(size[1])
		if !slices.Contains(young, "* attached at TC ingress") || slices.Contains(old, "* attached at TC ingress") {
			t.Errorf("a notice is in sight for too short or too long:\n%s\n%s", strings.Join(young, "\n"), strings.Join(old, "\n"))
		}
		if strings.Contains(strings.Join(frame, "\n"), "latency evicted") {
			t.Error("bookkeeping is shown")
		}
		s.Close()
		if end := term.take(); !strings.Contains(end[strings.LastIndex(end, leaveScreen):], "critical: 10.2.3.4") {
			t.Error("what was found is not left on the terminal")
		}
	}
}

// The share of the packets that an algorithm looked at is of segments where it counts those, and is not stated if it is all.
func TestTaken(t *testing.T) {
	for _, c := range []struct {
		p    Packets
		want string
	}{{Packets{Seen: 100, Used: 50}, " (50.0 % of the packets)"}, {Packets{Seen: 100, Used: 100}, ""}, {Packets{Seen: 100, Used: 99}, " (99.0 % of the packets)"}, {Packets{}, ""}, {Packets{Seen: 10, Segments: 100, Used: 50, UsedSegments: true}, " (50.0 % of the packets)"},
		{Packets{Seen: 100, Used: 50, UsedSegments: true}, " (50.0 % of the packets)"}, {Packets{Seen: 10, Segments: 100, Used: 5}, " (50.0 % of the packets)"}} {
		if got := taken(c.p); got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
}
