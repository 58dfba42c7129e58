package top

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	top "github.com/xdpmon/xdpmon/userspace/top"
)

var update = flag.Bool("update", false, "rewrite the screens; look at them")

// golden compares a screen with the one that was looked at.
func golden(t *testing.T, name, screen string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(screen), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if screen != string(want) {
		t.Errorf("%s differs (go test ./tests/top -update, then look at it):\n%s\nwas\n%s", name, screen, want)
	}
}

// Each view, on a small and on a large terminal.
func TestScreens(t *testing.T) {
	t.Parallel()
	r := begin(t)
	r.found(wrong())
	for _, size := range []struct {
		name          string
		width, height int
	}{{"80x24", 80, 24}, {"200x50", 200, 50}} {
		t.Run(size.name, func(t *testing.T) {
			show := func(view, screen string) { golden(t, view+"-"+size.name, screen) }
			tm := open(t, r.target, size.width, size.height, nil)
			show("overview", tm.until("critical", "uplink", "tenant-3", "▄"))
			tm.press(enter)
			show("finding", tm.until("Next: is the service up?"))
			tm.press(enter)
			show("instance", tm.until("[delays]", "[flows 30]", "p99"))
			tm.press(tab)
			show("prefixes", tm.until("[prefixes 6]", "2001:db8::/32"))
			tm.press("d")
			show("details", tm.until("100 %"))
			tm.press(escape)
			tm.until("[prefixes 6]")
			tm.press(right)
			tm.until("[queues]", "[bursts 1]")
			tm.press(tab)
			tm.until("[slices 2]")
			tm.press(enter)
			show("row", tm.until("bits a second that passed", "of 4"))
			tm.press("?")
			show("help", tm.until("Everywhere"))
			tm.press("q")
			tm.await()
			if tm.end != nil {
				t.Error(tm.end)
			}
		})
	}
}

// A terminal without colours and without UTF-8, and one that is far too small.
func TestPoorTerminals(t *testing.T) {
	t.Parallel()
	r := begin(t)
	r.found(wrong())
	tm := open(t, r.target, 80, 24, func(o *top.Options) { o.Color, o.Unicode = false, false })
	screen := tm.until("critical", "uplink", "+")
	golden(t, "overview-plain", screen)
	if n := strings.IndexFunc(screen, func(c rune) bool { return c > '~' }); n >= 0 {
		t.Errorf("%q is no ASCII", screen[n:])
	}
	tm.mu.Lock()
	for _, color := range []string{"\x1b[3", "\x1b[9", "\x1b[4"} {
		if strings.Contains(string(tm.written), color) && strings.Contains(string(tm.written), color+"1m") {
			t.Errorf("a colour was set: %q", color)
		}
	}
	tm.mu.Unlock()
	tm.resize(200, 50)
	tm.until("algorithms", "bit/s", "measures")
	for _, size := range [][2]int{{20, 5}, {1, 1}, {3, 2}, {80, 24}} {
		tm.resize(size[0], size[1])
	}
	tm.until("uplink", "? help")
}

// Names stay where they are put, whatever they are made of.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	r := begin(t)
	f := wrong()
	f[1].Subject.Name, f[1].Interface = hostile, hostile
	r.found(f)
	tm := open(t, r.target, 120, 30, nil)
	tm.until(`\x1b[2J\x1b[31mred\u202eevil\u0301`, "uplink")
	tm.press(enter)
	tm.until(`\u05d0\u05d1 界界`, "windows that show it")
	tm.press(escape)
	tm.until("over time")
	tm.press(tab, down, down, enter)
	tm.until("[flows", `\x1b[2J`)
	tm.press("/", "e", "v", "i", "l", enter)
	screen := tm.until(`1 of 30 rows: filter "evil"`, "? help")
	golden(t, "hostile", screen)
}
