package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/top/model"
)

// shown is a screen as text.
func shown(c *Canvas) (lines []string) {
	for y := range c.Height {
		var b strings.Builder
		for x := range c.Width {
			if r := c.At(x, y).Rune; r != 0 {
				b.WriteRune(r)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

func empty() *model.Model {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := model.New("here", func() time.Time { return now })
	m.Up, m.Known = true, true
	return m
}

// Nothing is called right before a window was measured, nor while findings are hidden.
func TestNothingIsWrong(t *testing.T) {
	const calm, hidden = "Nothing is wrong", "the filter hides them"
	for what, c := range map[string]struct {
		change       func(*model.Model)
		calm, hidden bool
	}{
		"nothing is known":        {func(m *model.Model) { m.Known, m.Latest = false, 1 }, false, false},
		"before the first window": {func(*model.Model) {}, false, false},
		"after it":                {func(m *model.Model) { m.Latest = 1767323040000 }, true, false},
		"a hidden finding": {func(m *model.Model) {
			m.Latest, m.Open = 1767323040000, []finding.Finding{{Kind: finding.Scan, Subject: finding.Subject{Type: finding.Host, Name: "10.1.1.1"}}}
			m.Place().Filter = "nowhere"
		}, false, true},
	} {
		m := empty()
		c.change(m)
		text := strings.Join(shown(Draw(m, Options{Quit: "quit"})), "\n")
		if strings.Contains(text, calm) != c.calm || strings.Contains(text, hidden) != c.hidden || !m.Known && !strings.Contains(text, "asking here") {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}

// The title has the source and the time that is shown, or why there is none; trouble is on a line of its own.
func TestTitle(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 3, 0, 0, time.UTC)
	for want, change := range map[string]func(*model.Model){
		"live, the first window is being measured": func(*model.Model) {}, "NOT CONNECTED": func(m *model.Model) { m.Up = false },
		"PAST 03:03:00 UTC, 1:00 min before the latest": func(m *model.Model) { m.Latest, m.At = 1767323040000, at },
		"PAST 2026-01-01 03:03:00 UTC":                  func(m *model.Model) { m.Latest, m.At = 1767323040000, at.AddDate(0, 0, -1) }, "PAUSED at 03:02:59 UTC": func(m *model.Model) { m.Latest, m.At, m.Paused = 1767323040000, at, true },
		"live": func(m *model.Model) { m.Known = false },
	} {
		m := empty()
		m.Instances = api.Instances{Command: "agent"}
		change(m)
		if got := shown(Draw(m, Options{}))[0]; !strings.HasPrefix(got, " xdpmon agent  here ") || !strings.HasSuffix(got+" ", want+" ") && !strings.Contains(got, want+",") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	m := empty()
	m.Trouble = "refused"
	if got := shown(Draw(m, Options{}))[1]; got != "refused" {
		t.Errorf("%q", got)
	}
	m.Up, m.Changed = false, m.Now().Add(-65*time.Second)
	if got := shown(Draw(m, Options{}))[1]; got != "no connection for 1:05 min, trying again: refused" {
		t.Errorf("%q", got)
	}
}

// Notices are shown for half a minute, the latest four, above the keys; of keys those are left out that find no place, but help and the way back.
func TestFooter(t *testing.T) {
	m := empty()
	for n, age := range []time.Duration{31, 30, 20, 10, 5, 1} {
		m.Notices = append(m.Notices, model.Notice{Text: string(rune('a' + n)), At: m.Now().Add(-age * time.Second)})
	}
	lines := shown(Draw(m, Options{Quit: "end"}))
	if got := lines[len(lines)-5 : len(lines)-1]; !slices.Equal(got, []string{"* c", "* d", "* e", "* f"}) || strings.Contains(strings.Join(lines, "\n"), "* b") || !strings.HasSuffix(lines[len(lines)-1], "? help  q end") {
		t.Errorf("%q", lines)
	}
	m.Notices, m.Missed = m.Notices[:2], 7
	if lines := shown(Draw(m, Options{})); !strings.HasPrefix(lines[len(lines)-3], "* 7 events were not received: this screen was too slow") || lines[len(lines)-2] != "* b" {
		t.Errorf("%q", lines)
	}
	m.Missed, m.Notices, m.Width = 0, nil, 30
	if lines := shown(Draw(m, Options{Quit: "quit"})); lines[len(lines)-1] != " Enter open  ? help  q quit" {
		t.Errorf("%q", lines[len(lines)-1])
	}
	m.Width, m.Filtering, m.Place().Filter = 80, true, "abc"
	if lines := shown(Draw(m, Options{})); lines[len(lines)-1] != " filter: abc_   Enter keeps it, Esc clears it" {
		t.Errorf("%q", lines[len(lines)-1])
	}
}

// Text takes as many cells as it has on a terminal, is cut at the edge, and cannot move what is beside it.
func TestCanvas(t *testing.T) {
	c := NewCanvas(6, 2)
	if x := c.Put(1, 0, Span{Text: "ab"}, Span{Text: "世界"}); x != 6 || shown(c)[0] != " ab世" { // the second one has one cell left of two
		t.Errorf("%d: %q", x, shown(c))
	}
	if c.Put(0, 1, Span{Text: "123456789"}) != 6 || c.Put(0, 2, Span{Text: "x"}) != 0 || c.Put(0, -1, Span{Text: "x"}) != 0 || shown(c)[1] != "123456" {
		t.Errorf("%q", shown(c))
	}
	c.Select(1)
	c.Select(2)
	c.Select(-1)
	if c.Fill(0, Title); !c.At(5, 1).Selected || c.At(5, 0).Selected || c.At(5, 0).Style != Title || c.At(5, 1).Style == Title {
		t.Errorf("%+v", c)
	}
	for text, want := range map[string]string{"plain ~": "plain ~", "a\x1bb": `a\x1bb`, "e\u0301": `e\u0301`, "\u05d0b": `\u05d0b`, "é世": "é世", "\u200bx": `\u200bx`} {
		if got := Safe(text); got != want || Width(text) < len([]rune(want)) {
			t.Errorf("%q: %q, want %q; width %d", text, got, want, Width(text))
		}
	}
	for width, want := range map[int]string{8: "ab世界cd", 7: "ab世界~", 6: "ab世~", 5: "ab世~", 4: "ab~", 1: "~", 0: "", -1: ""} {
		if got := clip("ab世界cd", width, "~"); got != want {
			t.Errorf("%d: %q, want %q", width, got, want)
		}
	}
	if padRight("世", 4) != "世  " || padLeft("世", 4) != "  世" || padLeft("long", 2) != "long" || (Line{{"a", Info}, {"世", Info}}).width() != 3 || len(NewCanvas(0, -1).cells) != 1 {
		t.Error("padding and widths")
	}
}

// The column has the delay's title if all rows have the same; rows without one do not matter.
func TestDelayTitle(t *testing.T) {
	for _, c := range []struct {
		titles []string
		want   string
	}{{nil, "delay"}, {[]string{"", ""}, "delay"}, {[]string{"", "a"}, "a"}, {[]string{"a", "", "a"}, "a"}, {[]string{"a", "b"}, "delay"}, {[]string{"a", "", "b"}, "delay"}} {
		var rows []*model.Row
		for _, title := range c.titles {
			rows = append(rows, &model.Row{Delay: title})
		}
		if got := delayTitle(rows, 40, "~"); got != c.want {
			t.Errorf("%q: %q", c.titles, got)
		}
	}
}
