package beaucoup

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/outcome"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// refused scans: every SYN from another port to another port, each answered by RST.
type refused struct{ scans, each, sent int }

// Next implements traffic.Model.
func (s *refused) Next(p *packet.Packet) bool {
	if s.sent == 2*s.scans*s.each {
		return false
	}
	scan, n, reply := s.sent/2%s.scans, s.sent/2/s.scans, s.sent%2
	scanner, victim := netip.AddrFrom4([4]byte{10, 0, 0, byte(scan)}), netip.AddrFrom4([4]byte{192, 168, 0, byte(scan)})
	*p = packet.Packet{Time: traffic.Start + int64(s.sent)*10_000, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6,
		Segs: 1, TCPFlags: packet.SYN, Len: 54, Src: scanner, Dst: victim, SrcPort: uint16(30000 + n), DstPort: uint16(1 + n)}
	if reply == 1 {
		p.TCPFlags = packet.RST | packet.ACK
		p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	}
	s.sent++
	return true
}

// The scanner is named, and not the scanned host, although replies go to as many ports as the scanner has used.
func TestRepliesToAScanAreNoScan(t *testing.T) {
	const scans = 20
	for _, set := range []string{"six", "many"} {
		lines := replayed(t, traffic.Frames(&refused{scans: scans, each: 600}), session.Config{Seed: 3}, map[string]string{"set": set})
		named, scanners := alertsOf(t, &lines[0].Report, "port-scan"), 0
		for key := range named {
			if strings.HasPrefix(key, "src=10.0.0.") {
				scanners++
			} else {
				t.Errorf("%s: %s is named as a scanner", set, key)
			}
		}
		if scanners < scans-2 {
			t.Errorf("%s: %d of %d scanners are named", set, scanners, scans)
		}
	}
}

// An alert's count has an interval and its confidence, and the oracle has the true count of every alert.
func TestAlertsAreEnclosedAndJudged(t *testing.T) {
	lines := replayed(t, traffic.Frames(&refused{scans: 40, each: 600}), session.Config{Seed: 5}, nil)
	held, judged := 0, 0
	for _, o := range outcome.Of(lines[0].Report, *lines[0].Truth) {
		if o.Quantity != "alerts.count" {
			continue
		}
		if !o.Enclosed || !o.Judged {
			t.Fatalf("%s: enclosed %v, judged %v", o.Row, o.Enclosed, o.Judged)
		}
		judged++
		if o.Holds() {
			held++
		}
	}
	if judged < 30 || held < judged*8/10 {
		t.Errorf("%d of %d intervals hold the truth", held, judged)
	}
	for _, row := range lines[0].Report.Tables[0].Rows {
		if c := row[len(row)-2].(float64); c < .5 || c > 1 {
			t.Errorf("%v: confidence %v", row[1], c)
		}
	}
}
