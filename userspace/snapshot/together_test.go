package snapshot

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// A merged window begins with the first and ends with the last, in wall clock time.
func TestTogetherInTime(t *testing.T) {
	a, b := New(Head{Algorithm: "x"}, report.Window{Start: 100, End: 200, Number: 7, Last: true}), New(Head{Algorithm: "x"}, report.Window{Start: 20, End: 90, Number: 5, Cut: true})
	a.Offset, b.Offset = 1000, 1070
	a.Packets, b.Packets = report.Packets{Seen: 3, Reasons: map[string]uint64{"arp": 1}}, report.Packets{Seen: 4, Reasons: map[string]uint64{"arp": 2, "ip": 1}}
	for _, s := range []*Snapshot{Together(a, b), Together(b, a)} {
		w := s.Window
		if w.Start != 1090 || w.End != 1200 || w.Number != 5 || w.Last || !w.Cut || w.Stretched {
			t.Errorf("window %+v", w)
		}
		if s.Packets.Seen != 7 || s.Packets.Reasons["arp"] != 3 || s.Packets.Reasons["ip"] != 1 || s.Parts != a.Parts+b.Parts {
			t.Errorf("%+v of %d parts", s.Packets, s.Parts)
		}
	}
	if a.Window.Start != 100 {
		t.Error("merging changed what was merged")
	}
}
