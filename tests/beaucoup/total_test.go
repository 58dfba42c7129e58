package beaucoup

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/outcome"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// sweeps are scans of as many ports of one host each, in turn, and in an order of their own.
type sweeps struct {
	keys, each, sent int
	gap              int64 // ns
	first, step      []uint16
}

func newSweeps(seed uint64, keys, each int, gap int64) *sweeps {
	r := rand.New(rand.NewPCG(seed, 31))
	s := &sweeps{keys: keys, each: each, gap: gap}
	for range keys {
		s.first, s.step = append(s.first, uint16(r.Uint32())), append(s.step, uint16(r.Uint32())|1)
	}
	return s
}

// Next implements traffic.Model.
func (s *sweeps) Next(p *packet.Packet) bool {
	if s.sent == s.keys*s.each {
		return false
	}
	key, n := s.sent%s.keys, s.sent/s.keys
	*p = packet.Packet{Time: traffic.Start + int64(s.sent)*s.gap, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1,
		TCPFlags: packet.SYN, Len: 54, SrcPort: 40000, DstPort: s.first[key] + uint16(n)*s.step[key],
		Src: netip.AddrFrom4([4]byte{10, 0, 1, byte(key)}), Dst: netip.AddrFrom4([4]byte{192, 168, 1, byte(key)})}
	s.sent++
	return true
}

// totals of a query's alerts, or of its earlier alerts.
func totals(tb testing.TB, b *report.Body, table string) (list [][3]float64) {
	tb.Helper()
	for _, t := range b.Tables {
		if t.Name != table {
			continue
		}
		for _, row := range t.Rows {
			var total [3]float64
			for n, name := range []string{"total", "total_low", "total_high"} {
				for c := range t.Columns {
					if t.Columns[c].Name == name {
						total[n], _ = report.Number(row[c])
					}
				}
			}
			list = append(list, total)
		}
	}
	return list
}

const scansOfPorts = "port-scan: count distinct dport by src+dst > 100 in 30s if tcp.syn and not tcp.ack"

// A scan's total is what it has scanned and not the threshold, from two to forty times that, and its interval holds. 160 scans of each size: 19 in 20
// intervals hold, and fewer than 9 in 10 once in a thousand runs.
func TestTotalsAreWhatWasScanned(t *testing.T) {
	first := testutil.Seed(t)
	for _, each := range []int{200, 1000, 4000} {
		held, all, square, alerts := 0, 0, 0.0, 0
		for seed := range uint64(2) {
			src := traffic.Frames(newSweeps(first+seed, 80, each, 1000))
			var lines []report.Line
			cfg := session.Config{Seed: first + seed, Algorithms: []session.Selected{selected(t, map[string]string{"queries": scansOfPorts})},
				Emit: func(l report.Line) error { lines = append(lines, l); return nil }}
			if err := session.ReplaySource(t.Context(), cfg, "model", src, nil); err != nil {
				t.Fatal(err)
			}
			for _, total := range totals(t, &lines[0].Report, "alerts") {
				alerts++
				if total[1] <= float64(each) && float64(each) <= total[2] {
					held++
				}
				if x := math.Log(total[0] / float64(each)); !math.IsNaN(x) {
					square += x * x
					all++
				}
			}
		}
		deviation := math.Sqrt(square / float64(all))
		t.Logf("%d ports: %d of %d intervals hold, deviation of the logarithm %.2f", each, held, alerts, deviation)
		if alerts < 150 || all < alerts*98/100 || held < alerts*9/10 || deviation > .4 {
			t.Errorf("%d ports: %d of %d intervals hold, %d have a value, logarithms deviate by %.2f", each, held, alerts, all, deviation)
		}
	}
}

// Windows of the report after the alert's have the total until the query's window ends, and the oracle judges them.
func TestTotalsGoOnAfterTheWindow(t *testing.T) {
	const keys, each = 30, 1000 // 12 s
	lines := replayed(t, traffic.Frames(newSweeps(3, keys, each, 400_000)), session.Config{Seed: 3, Window: 3 * time.Second}, map[string]string{"queries": scansOfPorts})
	if alerts := totals(t, &lines[0].Report, "alerts"); len(alerts) < keys/2 || len(lines) < 4 {
		t.Fatalf("%d windows, %d alerts in the first", len(lines), len(alerts))
	}
	before := 0.0
	for n, l := range lines[1:] {
		sum, held, judged := 0.0, 0, 0
		for _, o := range outcome.Of(l.Report, *l.Truth) {
			if o.Quantity != "counting.total" || !o.Judged {
				continue
			}
			judged++
			sum += o.Value
			if o.Enclosed && o.Holds() {
				held++
			}
			if n == 2 && o.Truth != each {
				t.Errorf("%s: the oracle has %g ports of %d", o.Row, o.Truth, each)
			}
		}
		if n < 3 && (judged < keys/2 || held < judged*8/10 || sum/float64(judged) < before*1.1) {
			t.Errorf("window %d: %d of %d intervals hold, the mean total is %.0f after %.0f", n+2, held, judged, sum/float64(judged), before)
		}
		before = sum / float64(judged)
	}
}
