package beaucoup

import (
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// mixed is packets with a key and an attribute each, and scans from a few keys half a minute later.
type mixed struct {
	scans
	others, n int
}

const scansBegin = 30 * int64(time.Second) // after the first packet

// Next implements traffic.Model.
func (c *mixed) Next(p *packet.Packet) bool {
	if c.n == c.others {
		ok := c.scans.Next(p)
		p.Time += scansBegin
		return ok
	}
	c.n++
	*p = packet.Packet{Time: traffic.Start + int64(c.n)*100_000, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6,
		Segs: 1, TCPFlags: packet.ACK, Len: 54, SrcPort: 1, DstPort: 2}
	p.Src = netip.AddrFrom4([4]byte{172, byte(16 + c.n>>16), byte(c.n >> 8), byte(c.n)})
	p.Dst = netip.AddrFrom4([4]byte{192, byte(c.n >> 16), byte(c.n >> 8), byte(c.n)})
	return true
}

// A table of 4096 collectors is filled by keys of a single packet, whose windows last for a minute. Scans that start half a
// minute later find their slots taken; if hopeless collectors are evicted, they are free. No alert is early.
func TestEviction(t *testing.T) {
	const keys = 100
	run := func(evict string) (alerts, early, evicted, unconfirmed, share float64) {
		m := &mixed{scans: scans{keys: keys, each: 400, gap: 500_000}, others: 40_000}
		set := map[string]string{"queries": "spread: count distinct dst by src > 86 in 60s", "entries": "4096", "budget": "1/2", "evict": evict}
		names := map[string]bool{}
		for _, l := range replayed(t, traffic.Frames(m), session.Config{Seed: 7, Window: 5 * time.Second}, set) {
			for _, row := range l.Report.Tables[0].Rows {
				names[row[1].(string)] = true
			}
			evicted += number(t, &l.Report, "collectors_evicted")
			unconfirmed += number(t, l.Truth, "unconfirmed")
			share = max(share, number(t, &l.Report, "collectors_share"))
			early += tooEarly(t, &l)
		}
		return float64(len(names)), early, evicted, unconfirmed, share
	}
	full, _, none, _, taken := run("1")
	alerting, early, evicted, unconfirmed, less := run("1/2")
	t.Logf("without eviction: %.0f %% of the table taken, %g of %d keys alert; with: %.0f %%, %g alert, %g evicted", 100*taken, full, keys,
		100*less, alerting, evicted)
	if none != 0 || evicted < 1000 {
		t.Errorf("%g collectors were evicted where it was off, %g where it was on", none, evicted)
	}
	// A key finds its place free with the share of free places. Three standard deviations of keys draws.
	if taken < 0.9 || full > keys*(1-taken)+3*5 {
		t.Errorf("without eviction %g of %d keys alert although %.0f %% of the table is taken", full, keys, 100*taken)
	}
	if alerting < 0.9*keys || unconfirmed > 0 || early > 0 {
		t.Errorf("with eviction %g of %d keys alert; %g alerts are not confirmed, %g for keys of one packet", alerting, keys, unconfirmed, early)
	}
}

// tooEarly counts alerts for keys that have done nothing.
func tooEarly(t *testing.T, l *report.Line) (n float64) {
	t.Helper()
	for _, row := range l.Report.Tables[0].Rows {
		if row[1].(string)[:len("src=10.")] != "src=10." {
			n++
		}
	}
	return n
}
