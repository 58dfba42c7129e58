package waits

import (
	"math"
	"net/netip"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/waits"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
	"github.com/xdpmon/xdpmon/userspace/waits/cause"
)

// snapshotOf is one of one connection: answers of a server, and ACKs of its client.
func snapshotOf(t *testing.T, missed uint64) *snapshot.Snapshot {
	t.Helper()
	s, v := snapshottest.New(t, Name, nil)
	c, err := newConfig(v, algo.SetupOf(s))
	if err != nil {
		t.Fatal(err)
	}
	p := packet.Packet{Valid: packet.IP | packet.Ports, Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}), SrcPort: 30000, Dst: netip.AddrFrom4([4]byte{10, 0, 0, 2}), DstPort: 443, Proto: 6}
	up, _ := c.spec.Of(&p)
	down := c.opposite(up)
	path := uint64(61+1)<<pathClient | uint64(122+1) // 1 and 2 ms
	s.Words[counterWords] = make(snapshot.Words, bpf.WaitsWaitsCounterWAITS_COUNTS)
	s.Words[delayWords] = make(snapshot.Words, legs*delayBins.Len())
	s.Words[unnamedWords] = snapshot.Words{0}
	for _, n := range []uint64{0, 1, 2, 3, 4, 5, 6, 7} {
		s.Words[delayWords][delayBins.Index(1e6+n*1e5)]++
	}
	rows := snapshot.Words{}
	rows = append(append(rows, up[:]...), uint64(cause.Answer), flagServer, path, 10, 10*18311, 0, 0, missed, 0)
	rows = append(append(rows, down[:]...), uint64(cause.Ack), 0, path, 2, 2*30518, 0, 0, missed, 0)
	s.Words[waitWords] = rows
	return s
}

// Without a kernel: what was counted becomes a verdict, and without all records there is no upper end.
func TestReportOfASnapshot(t *testing.T) {
	for _, missed := range []uint64{0, 1} {
		s := snapshotOf(t, missed)
		r := snapshottest.Report(t, s)
		causes, _ := report.Find(r.Body.Tables, "causes")
		row := causes.Rows[0]
		if len(causes.Rows) != 1 || row[2] != "10.0.0.2" || row[5] != "server" {
			t.Errorf("%v", causes.Rows)
		}
		if ns, _ := report.Number(row[6]); math.Abs(ns-10*298e6) > 1e6 {
			t.Errorf("%v ns, want ten answers of 298 ms", row[6])
		}
		if high, _ := report.Number(row[8]); math.IsNaN(high) != (missed > 0) {
			t.Errorf("%d missed: at most %v", missed, row[8])
		}
		if p50 := snapshottest.Value(r.Body, "server_leg_p50_ns"); p50 < 64e6 || p50 > 2*64e6 {
			t.Errorf("median leg %v", p50)
		}
		snapshottest.Stands(t, s)
	}
}
