package report

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// fakeTerminal keeps what was sent and lets the test resize it and move the clock.
type fakeTerminal struct {
	mu            sync.Mutex
	out           bytes.Buffer
	width, height int
	now           time.Time
}

func (f *fakeTerminal) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Write(b)
}

// take returns what was sent since the last call.
func (f *fakeTerminal) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.out.Reset()
	return f.out.String()
}

func (f *fakeTerminal) size() (int, int) { return f.width, f.height }

func newFakeScreen(f *fakeTerminal, notices *bytes.Buffer) *Screen {
	return NewScreen(ScreenOptions{Out: f, Notices: notices, Style: Style{}, Size: f.size, Every: time.Hour,
		Now: func() time.Time { return f.now }, Footer: "Ctrl-C ends"})
}

func TestScreenFrames(t *testing.T) {
	term := &fakeTerminal{width: 80, height: 24, now: time.Unix(1000, 0)}
	var notices bytes.Buffer
	s := newFakeScreen(term, &notices)
	if err := s.Start(fixtureRun()); err != nil {
		t.Fatal(err)
	}
	first := term.take()
	if !strings.HasPrefix(first, enterScreen) || !strings.Contains(first, "first window is being measured") {
		t.Errorf("first frame %q", first)
	}
	term.now = term.now.Add(4 * time.Second)
	s.Notice("native XDP was refused")
	frame := term.take()
	for _, want := range []string{"* native XDP was refused", "running for 4 s", "4 s of 10 s", "Ctrl-C ends", "[########............]"} {
		if !strings.Contains(frame, want) {
			t.Errorf("%q is missing in %q", want, frame)
		}
	}
	s.draw()
	if again := term.take(); again != "" {
		t.Errorf("an unchanged frame was sent again: %q", again)
	}
	if err := s.Line(fixtureLine()); err != nil {
		t.Fatal(err)
	}
	checkFrame(t, term.take(), 80, 24)
	term.width, term.height = 50, 12
	s.draw()
	small := term.take()
	checkFrame(t, small, 50, 12)
	if !strings.Contains(small, "more lines") {
		t.Errorf("the missing lines are not mentioned: %q", small)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	last := term.take()
	if !strings.HasPrefix(last, leaveScreen) || !strings.Contains(last, "fridge on eth0") {
		t.Errorf("after Close: %q", last)
	}
	if !strings.Contains(notices.String(), "native XDP was refused") {
		t.Errorf("notices %q", notices.String())
	}
	if err := s.Close(); err != nil || term.take() != "" {
		t.Error("a second Close did something")
	}
}

// checkFrame looks for what makes a screen flicker or scroll: an erase of all, more lines than it has, or wider ones.
func checkFrame(t *testing.T, frame string, width, height int) {
	t.Helper()
	if strings.Contains(frame, "\x1b[2J") {
		t.Error("the screen is cleared: it flickers")
	}
	body := strings.TrimSuffix(strings.TrimPrefix(frame, beginFrame), endFrame)
	lines := strings.Split(body, "\r\n")
	if len(lines) > height {
		t.Errorf("%d lines on a terminal of %d", len(lines), height)
	}
	for _, l := range lines {
		if text := strings.TrimSuffix(l, endLine); typeset.Length(text) > width {
			t.Errorf("%d characters on a terminal of %d: %q", typeset.Length(text), width, text)
		}
		if !strings.HasSuffix(l, endLine) {
			t.Errorf("the rest of the old line stays: %q", l)
		}
	}
}

// TestScreenUsesASmallTerminalWell: what can be left away makes room for what cannot.
func TestScreenUsesASmallTerminalWell(t *testing.T) {
	for height, want := range map[int][]string{
		40: {"----", "memory", "match rate", "11.9 .. 12.7"},
		24: {"match rate", "p99.9", "slowest source networks"},
		21: {"p99.9", "slowest source networks"},
	} {
		term := &fakeTerminal{width: 110, height: height}
		s := newFakeScreen(term, &bytes.Buffer{})
		if err := s.Start(fixtureRun()); err != nil {
			t.Fatal(err)
		}
		if err := s.Line(fixtureLine()); err != nil {
			t.Fatal(err)
		}
		frame := strings.Join(s.frame(height), "\n")
		if strings.Contains(frame, "more lines") {
			t.Errorf("height %d: something is cut off\n%s", height, frame)
		}
		for _, w := range want {
			if !strings.Contains(frame, w) {
				t.Errorf("height %d: %q is missing\n%s", height, w, frame)
			}
		}
		s.Close()
	}
}

func TestScreenSeveralAlgorithmsKeepTheirPlaces(t *testing.T) {
	term := &fakeTerminal{width: 80, height: 200}
	s := newFakeScreen(term, &bytes.Buffer{})
	if err := s.Start(fixtureRun()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"beta", "alpha", "beta", "alpha"} {
		l := fixtureLine()
		l.Algorithm = name
		if err := s.Line(l); err != nil {
			t.Fatal(err)
		}
	}
	frame := strings.Join(s.frame(200), "\n")
	if strings.Count(frame, " on eth0") != 2 || strings.Index(frame, "beta on") > strings.Index(frame, "alpha on") {
		t.Errorf("frame\n%s", frame)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestSinksReportAClosedWriter(t *testing.T) {
	style := Style{Width: 80}
	size := func() (int, int) { return 80, 24 }
	for name, s := range map[string]Sink{
		"json":   NewJSON(brokenPipe{}, &bytes.Buffer{}),
		"plain":  NewPlain(brokenPipe{}, &bytes.Buffer{}, style),
		"screen": NewScreen(ScreenOptions{Out: brokenPipe{}, Notices: &bytes.Buffer{}, Size: size, Now: time.Now, Every: time.Hour}),
	} {
		if err := s.Start(fixtureRun()); err == nil || !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("%s: Start returned %v", name, err)
		}
		if err := s.Line(fixtureLine()); err == nil {
			t.Errorf("%s: Line returned nil", name)
		}
		s.Close()
	}
}

func TestJSONSinkWritesObjectsOnly(t *testing.T) {
	var out, notices bytes.Buffer
	s := NewJSON(&out, &notices)
	if err := s.Start(fixtureRun()); err != nil {
		t.Fatal(err)
	}
	s.Notice("generic mode")
	if err := s.Line(fixtureLine()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], `{"run":{"version":`) || !strings.HasPrefix(lines[1], `{"algorithm":"fridge"`) {
		t.Errorf("got %q", lines)
	}
	if notices.String() != "xdpmon: generic mode\n" {
		t.Errorf("notices %q", notices.String())
	}
}

func TestClockTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1500 * time.Millisecond: "1.5 s", 7 * time.Second: "7 s", 65 * time.Second: "1:05 min", 7384 * time.Second: "2:03:04 h",
	} {
		if got := typeset.Clock(d); got != want {
			t.Errorf("clockTime(%v) = %q, want %q", d, got, want)
		}
	}
}

// Without a pace a table is drawn four times a second.
func TestScreenPace(t *testing.T) {
	if s := NewScreen(ScreenOptions{}); s.opt.Every != 250*time.Millisecond {
		t.Errorf("every %v", s.opt.Every)
	}
	if s := NewScreen(ScreenOptions{Every: time.Second}); s.opt.Every != time.Second {
		t.Errorf("every %v", s.opt.Every)
	}
}
