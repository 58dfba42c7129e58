package lean

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// even is a model in which how much a flow suffers does not depend on its size.
func even(seed uint64) traffic.LeanOptions {
	return traffic.LeanOptions{Packets: 300_000, Flows: 15_000, Most: 0.1, Seed: seed}
}

// TestByRate: in one window and in several, most of the flows that suffer most for their size are named, with bounds that hold their exact rates. The memory
// is not what limits here: the packets in front of a flow's first event are, and with them who has a hundred.
func TestByRate(t *testing.T) {
	held, bounds := 0, 0
	for _, window := range []time.Duration{0, 30 * time.Second} {
		for _, line := range through(t, even(1), window, map[string]string{"by": "rate", "top": "20"}) {
			if line.Window.Last && window > 0 {
				continue // the ACKs after the last window
			}
			for _, table := range line.Report.Tables {
				if recall := number(t, line.Error, table.Name+".recall"); recall < 0.7 {
					t.Errorf("%s: recall %.2f", table.Name, recall)
				}
			}
			hold, all := heldRates(t, &line)
			held, bounds = held+hold, bounds+all
		}
	}
	if bounds < 150 || float64(held) < 0.95*float64(bounds) {
		t.Errorf("%d of %d bounds hold the rate", held, bounds)
	}
}

// heldRates counts the listed rates with bounds, and those whose bounds hold the truth.
func heldRates(t *testing.T, line *report.Line) (held, bounds int) {
	t.Helper()
	for n, table := range line.Report.Tables {
		truth := map[string]float64{}
		for _, row := range line.Truth.Tables[n].Rows {
			truth[fmt.Sprint(row[:5]...)], _ = report.Number(row[5])
		}
		for _, row := range table.Rows {
			want, known := truth[fmt.Sprint(row[:5]...)]
			low, _ := report.Number(row[6])
			high, _ := report.Number(row[7])
			if !known || math.IsNaN(low) {
				continue
			}
			if bounds++; want >= low && want <= high {
				held++
			}
		}
	}
	return held, bounds
}

// TestRateIsNotCount: of two flows with as many packets out of order the smaller one is first by rate, and each has the share that it has.
func TestRateIsNotCount(t *testing.T) {
	small, large := netip.AddrFrom4([4]byte{10, 3, 0, 1}), netip.AddrFrom4([4]byte{10, 3, 0, 2})
	var packets []packet.Packet
	packets = append(packets, flowOf(small, 1000, 7, lateEvery(400, 10, 40_000))...)
	packets = append(packets, flowOf(large, 1001, 9, lateEvery(4000, 100, 4_000))...)
	for _, by := range []string{"count", "rate"} {
		line := ordered(t, newScript(packets), session.Config{Seed: 3}, map[string]string{"stat": "ooo", "by": by})
		found, want := listed(t, &line.Report, "ooo"), listed(t, line.Truth, "ooo")
		if len(found) != 2 {
			t.Fatalf("by %s: %v", by, found)
		}
		for name, value := range found {
			if math.Abs(value/want[name]-1) > 0.05 {
				t.Errorf("by %s, %v: %g, want %g", by, name, value, want[name])
			}
		}
		if first := rows(t, &line.Report, "ooo")[0]; by == "rate" && first.src != small.String() {
			t.Errorf("by rate %v is first", first)
		}
	}
}

// lateEvery are n segments, of which one in every k changes its place with the one behind it.
func lateEvery(n, k int, us int64) (list []segment) {
	for i := range n {
		at := i
		switch i % k {
		case 1:
			at = i + 1
		case 2:
			at = i - 1
		}
		list = append(list, data(int64(i/k)*us*int64(k)+int64(i%k)*100, uint32(at)*1000, uint16(at)))
	}
	return list
}
