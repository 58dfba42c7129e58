package conquest

import (
	"fmt"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
)

// TestWindows: exact windows are the bytecode's snapshots but for collisions, with every reading, so that they may stand for more snapshots than it has.
func TestWindows(t *testing.T) {
	testutil.NeedRoot(t)
	m, err := traffic.NewBursty(traffic.BurstyOptions{Packets: 25_000, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	s := NewStream(m, Link{Rate: 10e9, Buffer: 8 << 20, Tau: 800_000})
	for _, reading := range []string{"overlap", "nearest", "inner", "outer"} {
		for snapshots, shift := range map[int]int{2: 22, 4: 21, 16: 19} {
			answers, err := s.Ask(map[string]string{"reading": reading, "snapshots": fmt.Sprint(snapshots), "columns": "8192", "interval": fmt.Sprintf("%dns", 1<<shift)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			exact, collided := s.Windows(reading, snapshots, shift), 0
			if len(exact) != len(answers) || len(exact) < 3000 {
				t.Fatalf("%s, b = %d: %d answers, %d of the bytecode", reading, snapshots, len(exact), len(answers))
			}
			for n, a := range answers {
				e := exact[n]
				if a.Departure != e.Departure || a.Delay != e.Delay || a.Total != e.Total || a.Size < e.Size {
					t.Fatalf("%s, b = %d, packet %d: %+v, the bytecode has %+v", reading, snapshots, n, e, a)
				}
				if a.Size != e.Size {
					collided++
				}
			}
			if 50*collided > len(answers) {
				t.Errorf("%s, b = %d: %d of %d sizes differ", reading, snapshots, collided, len(answers))
			}
		}
	}
}
