package typeset

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Lines have at most the width, words stay whole where they can, and a longer one is cut.
func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text          string
		width, indent int
		want          []string
	}{
		{"", 10, 2, nil}, {"  one  ", 10, 2, []string{"one"}}, {"aaaa bbbbb", 10, 2, []string{"aaaa bbbbb"}}, {"aaaa bbbbbb", 10, 2, []string{"aaaa", "  bbbbbb"}},
		{"a bb ccc dddd", 6, 1, []string{"a bb", " ccc", " dddd"}}, {"a bbb ccc", 6, 1, []string{"a bbb", " ccc"}}, {"éééé üüü", 8, 0, []string{"éééé üüü"}},
		{"abcdefghijkl", 6, 1, []string{"abcde", " fghij", " kl"}}, {"abcde fghij", 6, 1, []string{"abcde", " fghij"}},
	} {
		if got := Wrap(c.text, c.width, c.indent); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// Blocks and cells are aligned by characters, without blanks at the end of lines.
func TestAlignment(t *testing.T) {
	if got := SideBySide([]string{"é", "bbb"}, []string{"1", "2", "3"}, 2); !slices.Equal(got, []string{"é    1", "bbb  2", "     3"}) {
		t.Errorf("%q", got)
	}
	if got := SideBySide([]string{"a", "b"}, nil, 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
	g := Grid{Right: []bool{false, true}}
	g.Add("é", "1", "x")
	g.Add("bbb", "22")
	g.Add("c", "333", "", "last")
	if got := g.Lines(); !slices.Equal(got, []string{"é      1  x", "bbb   22", "c    333     last"}) {
		t.Errorf("%q", got)
	}
	if PadLeft("long", 3) != "long" || PadRight("é", 2) != "é " || PadLeft("é", 2) != " é" || Blanks(-1) != "" {
		t.Error("padding")
	}
	for _, c := range []struct {
		wide, width int
		want        []string
	}{{3, 8, []string{"a  bb", "ccc"}}, {3, 9, []string{"a  bb ccc"}}, {3, 2, []string{"a", "bb", "ccc"}}, {0, 2, []string{"abb", "ccc"}}} {
		if got := Columns([]string{"a", "bb", "ccc"}, c.wide, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%d in %d: %q, want %q", c.wide, c.width, got, c.want)
		}
	}
}

// A text that is too long ends with the mark, within the length.
func TestClip(t *testing.T) {
	for n, want := range map[int]string{6: "éabcd", 5: "éabcd", 4: "éab…", 1: "…", 0: "", -1: ""} {
		if got := Clip("éabcd", n, "…"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// What moves a cursor or turns text is escaped; everything else is as it was.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{"plain é\u00a0~ ": "plain é\u00a0~ ", "a\x1b[2J": `a\x1b[2J`, "\u009b\u00ff\u00ad": `\x9bÿ\xad`, "\u0100\u0378\u202e": `Ā\u0378\u202e`, "\U000e0001x": `\ue0001x`, "\n": `\x0a`} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 s", 1500 * time.Millisecond: "1.5 s", 7 * time.Second: "7 s", 9900 * time.Millisecond: "9.9 s", 10*time.Second + 600*time.Millisecond: "10 s", 59 * time.Second: "59 s",
		time.Minute: "1:00 min", 65 * time.Second: "1:05 min", time.Hour - time.Second: "59:59 min", time.Hour: "1:00:00 h", 26*time.Hour + 3*time.Minute + 4*time.Second: "26:03:04 h"} {
		if got := Clock(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if strings.Contains(Clock(time.Minute), ".") {
		t.Error("a fraction of a minute")
	}
}
