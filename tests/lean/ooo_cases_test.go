package lean

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// cases are flows, and how many of their packets are late and sent again. Times are in microseconds.
var cases = []struct {
	name        string
	initial     uint32
	segments    []segment
	late, again float64
}{
	{name: "in order", segments: []segment{data(0, 0, 1), data(1000, 1000, 2), data(20000, 2000, 3)}},
	{name: "numbers wrap", initial: ^uint32(0) - 1500, segments: []segment{data(0, 0, 1), data(1000, 1000, 2), data(20000, 2000, 3)}},
	{name: "swap", segments: []segment{data(0, 0, 1), data(500, 2000, 3), data(1000, 1000, 2), data(1500, 3000, 4)}, late: 1},
	{name: "swap at the wrap", initial: ^uint32(0) - 1500, late: 1,
		segments: []segment{data(0, 0, 1), data(500, 2000, 3), data(1000, 1000, 2), data(1500, 3000, 4)}},
	{name: "late by 2.9 ms", segments: []segment{data(0, 0, 1), data(100, 2000, 3), data(3000, 1000, 2)}, late: 1},
	{name: "first packet late", segments: []segment{data(0, 1000, 2), data(500, 0, 1), data(20000, 2000, 3)}, late: 1},
	{name: "sent again", segments: []segment{data(0, 0, 1), data(100, 1000, 2), data(50000, 0, 3), data(50100, 2000, 4)}, again: 1},
	{name: "sent again at the wrap", initial: ^uint32(0) - 500, again: 1,
		segments: []segment{data(0, 0, 1), data(100, 1000, 2), data(50000, 0, 3), data(50100, 2000, 4)}},
	{name: "a hole filled late", segments: []segment{data(0, 0, 1), data(100, 2000, 3), data(50000, 1000, 4)}, again: 1},
	{name: "a train sent again in order", segments: []segment{data(0, 0, 1), data(100, 1000, 2), data(200, 2000, 3),
		data(250000, 0, 4), data(250100, 1000, 5), data(250200, 2000, 6), data(250300, 3000, 7)}, again: 3},
	{name: "last segment again", segments: []segment{data(0, 0, 1), data(100, 1000, 2), data(250000, 1000, 3)}, again: 1},
	{name: "last segment again three times", segments: []segment{data(0, 0, 1), data(100, 1000, 2), data(250000, 1000, 3), data(750000, 1000, 4),
		data(1750000, 1000, 5)}, again: 3},
	{name: "partly new", segments: []segment{data(0, 0, 1), data(100, 1000, 2), {50000, 1000, 3000, packet.ACK, 3}}, again: 1},
	{name: "mirrored", segments: []segment{data(0, 0, 1), data(1, 0, 1), data(1000, 1000, 2), data(1001, 1000, 2), data(2000, 2000, 3)}},
	{name: "swap, mirrored", segments: []segment{data(0, 0, 1), data(1, 0, 1), data(500, 2000, 3), data(501, 2000, 3), data(1000, 1000, 2),
		data(1001, 1000, 2)}, late: 1},
	{name: "sent again, mirrored", segments: []segment{data(0, 0, 1), data(1, 0, 1), data(100, 1000, 2), data(101, 1000, 2), data(50000, 0, 3),
		data(50001, 0, 3)}, again: 1},
	{name: "mirrored three times", segments: []segment{data(0, 0, 1), data(50000, 0, 2), data(50001, 0, 2), data(50002, 0, 2)}, again: 1},
	{name: "pure ACKs", segments: []segment{data(0, 0, 1), {10000, 1000, 0, packet.ACK, 2}, {20000, 500, 0, packet.ACK, 3}, data(30000, 1000, 4)}},
	{name: "keep-alive", segments: []segment{data(0, 0, 1), {10000, 999, 0, packet.ACK, 2}, {20000, 999, 0, packet.ACK, 3}, data(30000, 1000, 4)}},
	{name: "keep-alive of a byte", segments: []segment{data(0, 0, 1), {10000, 999, 1, packet.ACK, 2}, {20000, 999, 1, packet.ACK, 3}, data(30000, 1000, 4)}},
	{name: "window probes", segments: []segment{data(0, 0, 1), {10000, 1000, 1, packet.ACK, 2}, {20000, 1000, 1, packet.ACK, 3}, data(30000, 1001, 4)}},
	{name: "segments of the size of GSO's", segments: []segment{{0, 0, 60000, packet.ACK, 1}, {100, 60000, 60000, packet.ACK, 2},
		{50000, 0, 60000, packet.ACK, 3}, {50100, 120000, 60000, packet.ACK, 4}}, again: 1},
	{name: "another connection below", segments: []segment{data(0, 0, 1), data(10000, 1<<30, 2), data(20000, 1<<30+1000, 3), data(30000, 5000, 4),
		data(40000, 6000, 5), data(50000, 7000, 6)}},
	{name: "SYN with data, again", segments: []segment{{0, 0, 100, packet.SYN, 1}, {1000000, 0, 100, packet.SYN, 2}, data(1010000, 101, 3)}},
	{name: "reset with data", segments: []segment{data(0, 0, 1), data(1000, 1000, 2), {50000, 0, 10, packet.RST, 3}}},
	{name: "FIN with data, again", segments: []segment{data(0, 0, 1), {1000, 1000, 500, packet.FIN | packet.ACK, 2},
		{300000, 1000, 500, packet.FIN | packet.ACK, 3}}, again: 1},
	// A fast retransmission in a running train is within 3 ms of the maximum: out of order by the paper's definition, and sent again.
	{name: "fast retransmission in a train", segments: append(train(0, 40, 500), data(20100, 3000, 99)), late: 1, again: 1},
}

// train is n full segments in order.
func train(us int64, n int, gap int64) (list []segment) {
	for i := range n {
		list = append(list, data(us+int64(i)*gap, uint32(i)*1000, uint16(i)))
	}
	return list
}

// shifted are the segments at another time: a copy is recognized as long as no other flow is between it and its packet.
func shifted(segments []segment, us int64) (list []segment) {
	for _, s := range segments {
		s.us += us
		list = append(list, s)
	}
	return list
}

// sources are the hosts that send case n.
func sources(n int) [2]netip.Addr {
	return [2]netip.Addr{netip.AddrFrom4([4]byte{10, 1, byte(n), 1}), netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 1, byte(n), 15: 1})}
}

// Late packets, retransmissions, and neither: by the data plane and by the oracle, over IPv4 and IPv6, alone and
// both together, and with hashes that a switch computes. An IPv6 packet has no identification, and none of the cases needs it.
func TestWhatIsLateAndWhatIsSentAgain(t *testing.T) {
	for _, set := range []map[string]string{{}, {"stat": "ooo"}, {"stat": "retrans"}, {"ooo": "misra-gries"}, {"hash": "crc"}} {
		var packets []packet.Packet
		for n, c := range cases {
			for k, src := range sources(n) {
				packets = append(packets, flowOf(src, uint16(5000+n), 1<<20+c.initial, shifted(c.segments, int64(137*n+61*k)))...)
			}
		}
		cfg := session.Config{Hash: algo.Hash(set["hash"]), Seed: 7}
		delete(set, "hash")
		l := ordered(t, newScript(packets), cfg, set)
		name := fmt.Sprint(set, cfg.Hash)
		for _, b := range []string{"ooo", "retrans"} {
			if s := set["stat"]; s != "" && s != b {
				continue
			}
			if probes := snapshottest.Value(l.Report, "retrans_probes"); b == "retrans" && probes != 6 {
				t.Errorf("%s: %g probes of one byte, want 3 over each version of IP", name, probes)
			}
			found, truth := listed(t, &l.Report, b), listed(t, l.Truth, b)
			for n, c := range cases {
				want := c.late
				if b == "retrans" {
					want = c.again
				}
				for _, src := range sources(n) {
					dst := "198.18.0.1"
					if src.Is6() {
						dst = "2001:db8::1"
					}
					key := flowName{src.String(), dst, int64(443), int64(5000 + n)}
					if found[key] != want || truth[key] != want {
						t.Errorf("%s, %s, %s, %s: the data plane counts %g, the oracle %g, want %g", name, b, c.name, src, found[key], truth[key], want)
					}
				}
			}
		}
	}
}
