package session

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
	"github.com/xdpmon/xdpmon/userspace/packet"
	_ "github.com/xdpmon/xdpmon/userspace/precision"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func lengthsOf(lengths map[string]time.Duration, names ...string) (all []Selected) {
	for _, name := range names {
		d, err := algo.Lookup(name)
		if err != nil {
			panic(err)
		}
		s, err := d.Select(nil, algo.Setup{})
		if err != nil {
			panic(err)
		}
		s.Window = int64(lengths[name])
		all = append(all, s)
	}
	return all
}

// Windows of all algorithms end where one of the shortest ends.
func TestLengths(t *testing.T) {
	for text, one := range map[string]struct {
		window  time.Duration
		lengths map[string]time.Duration
		good    bool
	}{
		"one":                  {10 * time.Second, nil, true},
		"a multiple":           {10 * time.Second, map[string]time.Duration{"fridge": time.Minute}, true},
		"a part":               {10 * time.Second, map[string]time.Duration{"fridge": time.Second}, true},
		"no multiple":          {7 * time.Second, map[string]time.Duration{"fridge": time.Minute}, false},
		"of the shortest only": {6 * time.Second, map[string]time.Duration{"fridge": 2 * time.Second, "precision": 4 * time.Second}, true},
		"whole, and one":       {0, map[string]time.Duration{"fridge": time.Minute}, true},
		"not of another's":     {0, map[string]time.Duration{"fridge": time.Minute, "precision": 90 * time.Second}, false},
	} {
		err := CheckWindows(lengthsOf(one.lengths, "fridge", "precision", "rtt-array"), one.window)
		if (err == nil) != one.good || err != nil && !errors.Is(err, ErrWindows) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// timed is packets at the given times, ms.
type timed struct {
	capture.Source
	at   []int64
	data []byte
}

func (s *timed) Next(f *packet.Frame) error {
	if len(s.at) == 0 {
		return io.EOF
	}
	f.Time, f.Data, f.Len = 1e15+s.at[0]*1e6, s.data, len(s.data)
	s.at = s.at[1:]
	return nil
}

func (*timed) Skipped() map[string]uint64    { return nil }
func (*timed) Progress() (read, total int64) { return 0, 0 }

// In a replay every packet is in one window of each algorithm, whose times are those of its length, across a gap in which several windows end, and the last,
// partial windows of all are printed.
func TestReplayInSeveralLengths(t *testing.T) {
	testutil.NeedRoot(t)
	got := map[string][]string{}
	cfg := Config{Algorithms: lengthsOf(map[string]time.Duration{"fridge": 2 * time.Second, "precision": 6 * time.Second}, "fridge", "rtt-array", "precision"), Window: time.Second, Proven: true,
		Emit: func(l report.Line) error {
			w := l.Window
			text := fmt.Sprintf("%d: %d to %d, %d", w.Number, (w.Start-1e15)/1e6, (w.End-1e15)/1e6, l.Packets.Seen)
			if w.Last {
				text += " last"
			}
			if l.Algorithm == "precision" && l.Packets.Used != l.Packets.Seen {
				text += fmt.Sprintf(", %d used", l.Packets.Used)
			}
			got[l.Algorithm] = append(got[l.Algorithm], text)
			return nil
		}}
	source := &timed{at: []int64{0, 10, 999, 1000, 2500, 2600, 15_500, 15_600, 16_000}, data: builder.MustBuild(&builder.Spec{IP: builder.IP{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")}, TCP: &builder.TCP{}}).Data}
	if err := ReplaySource(t.Context(), cfg, "it", source, nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"rtt-array": {"0: 0 to 1000, 3", "1: 1000 to 2000, 1", "2: 2000 to 3000, 2", "15: 15000 to 16000, 2", "16: 16000 to 16000, 1 last"},
		"fridge":    {"0: 0 to 2000, 4", "1: 2000 to 4000, 2", "7: 14000 to 16000, 2", "8: 16000 to 16000, 1 last"},
		"precision": {"0: 0 to 6000, 6", "2: 12000 to 16000, 3 last"},
	} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}
