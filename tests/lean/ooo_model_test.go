package lean

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// lateFlows are trains of 60 packets, 400 us apart, of which one in the middle is late by a random time.
func lateFlows(rng *rand.Rand, n int, low, high int64) (packets []packet.Packet) {
	for i := range n {
		segments := train(int64(i)*50_000, 60, 400)
		hole := 5 + rng.IntN(10)
		late := segments[hole+1].us + low + rng.Int64N(high-low) // after the packet that overtook it
		segments[hole].us = late
		segments[hole].id += 1000
		slices.SortStableFunc(segments, func(a, b segment) int { return int(a.us - b.us) })
		src := netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)})
		packets = append(packets, flowOf(src, 5000, rng.Uint32(), segments)...)
	}
	return packets
}

// A packet is sent again when its place was passed more than 3 ms before. The cuts of a record are never younger than that,
// and by their construction (T, P and C, each a window apart) contain all that is older than three windows and three ticks:
// a delay of 3 ms is never counted as a retransmission, one of 9.3 ms always, of flows that have a record.
func TestLatenessThatCounts(t *testing.T) {
	const flows = 400
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		low, high int64 // us
		want      float64
	}{{1, 2990, 0}, {9300, 14000, flows}} {
		l := ordered(t, newScript(lateFlows(rng, flows, c.low, c.high)), session.Config{Seed: 3}, map[string]string{"stat": "retrans", "memory": "640kB"})
		if got := count(t, &l.Report, "retransmitted"); got != c.want {
			t.Errorf("late by %d to %d us: %g sent again, want %g", c.low, c.high, got, c.want)
		}
		if got := count(t, l.Truth, "all_again"); got != c.want {
			t.Errorf("late by %d to %d us: the oracle has %g, want %g", c.low, c.high, got, c.want)
		}
	}
}

// hits is how many of the first want flows of a table have a true value that is not below the last of the first want in truth.
func hits(t *testing.T, l *report.Line, table string, want int) int {
	truth, found := listed(t, l.Truth, table), rows(t, &l.Report, table)
	values := make([]float64, 0, len(truth))
	for _, v := range truth {
		values = append(values, v)
	}
	slices.Sort(values)
	if len(values) < want {
		t.Fatalf("%s: only %d flows have events", table, len(values))
	}
	least, n := values[len(values)-want], 0
	for _, name := range found[:min(want, len(found))] {
		if truth[name] >= least {
			n++
		}
	}
	return n
}

// rows are a table's flows in their order.
func rows(t *testing.T, b *report.Body, table string) (names []flowName) {
	for _, tab := range b.Tables {
		if tab.Name != table {
			continue
		}
		for _, row := range tab.Rows {
			names = append(names, flowName{row[0].(string), row[2].(string), row[1], row[3]})
		}
	}
	return names
}

// The bar of the issue on a quarter of the model with a quarter of the memory: 82 % of the flows that suffer most, with 10,000
// bytes a statistic. docs/eval/lean.md has the full model over ten seeds.
func TestFindsTheWorst(t *testing.T) {
	testutil.NeedRoot(t)
	const top = 25
	m, err := traffic.NewLean(traffic.LeanOptions{Packets: 1_750_000, Flows: 92_500, Heavy: 250, Victims: top, Late: 0.04, Again: 0.01, Seed: 11})
	if err != nil {
		t.Fatal(err)
	}
	l := ordered(t, traffic.Frames(m), session.Config{Seed: 11}, map[string]string{"memory": "10kB"})
	for _, table := range []string{"ooo", "retrans"} {
		n := hits(t, &l, table, top)
		t.Logf("%s: %d of %d", table, n, top)
		if float64(n) < 0.82*top {
			t.Errorf("%s: %d of the true top %d found, want 82 %%", table, n, top)
		}
	}
	if used := count(t, &l.Report, "window_memory"); used > 20_000 {
		t.Errorf("two statistics take %g bytes, want at most 20,000", used)
	}
}

// Every flow of a real capture with ten or more events is listed, in the order of the oracle: of two such flows whose true
// counts differ the larger one is first.
func TestCapturesAgreeWithOracle(t *testing.T) {
	for _, name := range []string{"web_reordered.pcap", "laptop_wan_300s.pcap", "speedtest_server.pcap", "composite_120s.pcap"} {
		src, err := capture.OpenAll([]string{testutil.Trace(t, name)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := ordered(t, capture.Concat(src...), session.Config{Seed: 5}, nil)
		for _, table := range []string{"ooo", "retrans"} {
			agree(t, fmt.Sprintf("%s, %s", name, table), listed(t, l.Truth, table), listed(t, &l.Report, table))
		}
	}
}

func agree(t *testing.T, what string, truth, found map[flowName]float64) {
	t.Helper()
	var heavy []flowName
	for name, v := range truth {
		if v >= 10 {
			heavy = append(heavy, name)
			if found[name] == 0 {
				t.Errorf("%s: flow %v with %g events is not listed", what, name, v)
			}
		}
	}
	for _, a := range heavy {
		for _, b := range heavy {
			if truth[a] > truth[b] && found[a] <= found[b] {
				t.Errorf("%s: flow %v has %g events and is listed with %g, %v has %g and is listed with %g", what, a, truth[a], found[a], b, truth[b], found[b])
			}
		}
	}
	t.Logf("%s: %d flows with 10 events or more", what, len(heavy))
}
