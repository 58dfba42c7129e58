package fridge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// chatter makes random packets of a few flows: requests that are repeated, answered late, twice or never, ends that
// come before beginnings. Whatever the rules are, data plane and oracle must read it alike.
func chatter(seed uint64, n int, make func(rng *rand.Rand, p *packet.Packet)) []packet.Packet {
	rng := rand.New(rand.NewPCG(seed, 13))
	packets := []packet.Packet{}
	at := int64(1e9)
	for range n {
		at += 1 + rng.Int64N(3*msec)
		p := packet.Packet{Time: at, Segs: 1, Proto: 6, SrcPort: uint16(1000 + rng.IntN(2)), DstPort: 443,
			Src: netip.AddrFrom4([4]byte{10, 0, byte(rng.IntN(3)), 1}), Dst: netip.MustParseAddr("192.0.2.1")}
		if rng.IntN(4) == 0 {
			p.Src, p.Dst = netip.MustParseAddr("2001:db8:1::7"), netip.MustParseAddr("2001:db8:2::1")
		}
		p.Valid = packet.IP
		make(rng, &p)
		if rng.IntN(2) == 0 {
			p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
		}
		packets = append(packets, p)
	}
	return packets
}

func tcpChatter(flags ...uint8) func(*rand.Rand, *packet.Packet) {
	return func(rng *rand.Rand, p *packet.Packet) {
		p.Valid |= packet.Ports | packet.TCP
		if rng.IntN(3) > 0 {
			p.Valid |= packet.TSOpt
			p.TSVal, p.TSEcr = uint32(rng.IntN(6)), uint32(rng.IntN(6))
		}
		p.TCPFlags = flags[rng.IntN(len(flags))]
		p.Seq, p.Ack, p.Payload = uint32(rng.IntN(4)), uint32(rng.IntN(8)), uint32(max(0, rng.IntN(8)-4))
		if rng.IntN(2) == 0 {
			p.Valid |= packet.IsEgress
		}
	}
}

func appChatter(port uint16) func(*rand.Rand, *packet.Packet) {
	return func(rng *rand.Rand, p *packet.Packet) {
		p.Valid |= packet.Ports | packet.UDP
		p.Proto, p.DstPort, p.AppID, p.Payload = 17, port, uint64(rng.IntN(5)), 60
		if p.Valid |= packet.AppRequest; rng.IntN(2) == 0 {
			p.Valid = p.Valid&^packet.AppRequest | packet.AppResponse
		}
	}
}

func echoChatter(rng *rand.Rand, p *packet.Packet) {
	p.Valid |= packet.ICMP
	p.Proto, p.SrcPort, p.DstPort, p.Seq, p.Payload = 1, 9, 9, uint32(rng.IntN(5)), 56
	p.ICMPType = []uint8{0, 8}[rng.IntN(2)]
	if !p.Src.Is4() {
		p.Proto = 58
		p.ICMPType = []uint8{128, 129}[rng.IntN(2)]
	}
}

// TestAgainstOracle: with enough entries the data plane's samples are the oracle's, rule by rule, exactly.
func TestAgainstOracle(t *testing.T) {
	const syn, ack, fin, rst = packet.SYN, packet.ACK, packet.FIN, packet.RST
	opening := tcpChatter(syn, syn|ack, ack, ack, syn|0xc0, ack|fin)
	running := tcpChatter(ack, ack, ack|packet.PSH, syn, syn|ack, ack|fin, rst, rst|ack)
	for _, c := range []struct {
		set  map[string]string
		make func(*rand.Rand, *packet.Packet)
	}{
		{map[string]string{"match": "tcp-handshake"}, opening},
		{map[string]string{"match": "tcp-handshake", "retransmit": "restart"}, opening},
		{map[string]string{"match": "tcp-handshake", "legs": "false", "group": "src/24", "rows": "64"}, opening},
		{map[string]string{"match": "tcp-data"}, running},
		{map[string]string{"match": "tcp-data", "side": "egress", "retransmit": "restart"}, running},
		{map[string]string{"match": "tcp-data", "side": "ingress"}, running},
		{map[string]string{"match": "tcp-timestamp"}, running},
		{map[string]string{"match": "tcp-timestamp", "side": "egress"}, running},
		{map[string]string{"match": "dns"}, appChatter(53)},
		{map[string]string{"match": "ntp"}, appChatter(123)},
		{map[string]string{"match": "icmp-echo"}, echoChatter},
		{map[string]string{"match": "tcp-duration", "tick": "64ns"}, running},
		{map[string]string{"match": "tcp-duration", "tick": "64ns", "group": "dport", "rows": "64", "retransmit": "restart"}, running},
	} {
		t.Run(fmt.Sprint(c.set), func(t *testing.T) {
			c.set["fridges"] = "65536@1"
			compareExactly(t, trial{set: c.set, model: inTime(chatter(1, 6000, c.make)), seed: 6, truth: true})
		})
	}
}

func compareExactly(t *testing.T, c trial) {
	t.Helper()
	l := c.last(t)
	if lost := valueOf(t, l.Report, "evicted"); lost > 0 {
		t.Fatalf("%g records were evicted: choose another seed", lost)
	}
	for _, name := range []string{"matched", "requests"} {
		if got, want := valueOf(t, l.Report, name), valueOf(t, *l.Truth, name); got != want {
			t.Errorf("%s = %g, the oracle has %g", name, got, want)
		}
	}
	for _, truth := range l.Truth.Distributions {
		d := find(t, l.Report, truth.Name)
		if truth.Count < 50 {
			t.Errorf("%s: only %g samples", truth.Name, truth.Count)
		}
		// A few flows that repeatedly insert into the same slots, which counts as surviving.
		if math.Abs(d.Count/truth.Count-1) > 0.03 {
			t.Errorf("%s: %g estimated, %g in truth", truth.Name, d.Count, truth.Count)
		}
		if math.Abs(d.Mean/truth.Mean-1) > 0.03 {
			t.Errorf("%s: mean %g, in truth %g", truth.Name, d.Mean, truth.Mean)
		}
		if q, want := quantile(d, "p90").Value, quantile(truth, "p90").Value; math.Abs(q/want-1) > 0.1 {
			t.Errorf("%s: p90 %g, in truth %g", truth.Name, q, want)
		}
	}
	for _, truth := range l.Truth.Tables {
		compareGroups(t, l.Report.Tables[0].Rows, truth.Rows)
	}
}

func compareGroups(t *testing.T, got, want [][]any) {
	t.Helper()
	counts := map[any]any{}
	for _, row := range got {
		counts[row[0]] = row[1]
	}
	for _, row := range want {
		if counts[row[0]] != row[1] {
			t.Errorf("group %v: %v samples, the oracle has %v", row[0], counts[row[0]], row[1])
		}
	}
	if len(got) != len(want) || len(want) < 3 {
		t.Errorf("%d groups, the oracle has %d", len(got), len(want))
	}
}

// TestExamples: the examples in the documentation load unchanged, and measure.
func TestExamples(t *testing.T) {
	for _, set := range []map[string]string{
		{"fridges": "32768@1/2,32768@1/64"},
		{"fridges": "16384@1:0.9,16384@1:0.1", "correction": "table"},
		{"fridges": "16384@1,16384@1/2,16384@1/4,16384@1/8"},
		{"match": "tcp-handshake", "group": "src/24", "sla": "50ms@95%"},
		{"group": "dport", "correction": "exact", "rows": "9"},
		{"group": "vlan", "fridges": "32768@1/2,32768@1/64"},
	} {
		l := trial{set: set, model: inTime(services(4000)), seed: 1, truth: true}.last(t)
		d, truth := find(t, l.Report, "delay_ns"), find(t, *l.Truth, "delay_ns")
		if reach := 4*d.CountErr + 0.02*truth.Count; math.Abs(d.Count-truth.Count) > reach {
			t.Errorf("%v: %g estimated, %g in truth", set, d.Count, truth.Count)
		}
	}
	for _, set := range []map[string]string{{"match": "tcp-duration"}, {"match": "tcp-duration", "group": "src/16"},
		{"match": "tcp-duration", "fridges": "32768@1/2,32768@1/64"}, {"match": "tcp-duration", "correction": "table"}} {
		flags := tcpChatter(packet.ACK, packet.SYN, packet.ACK|packet.FIN)
		l := trial{set: set, model: inTime(chatter(2, 4000, flags)), seed: 1, truth: true}.last(t)
		if got := valueOf(t, l.Report, "matched"); got < 5 {
			t.Errorf("%v: %g flows", set, got)
		}
		if d := find(t, l.Report, "flow_bytes"); len(l.Report.Distributions) != 3 || !(d.Count > 5) {
			t.Errorf("%v: %g flows with bytes in %d distributions", set, d.Count, len(l.Report.Distributions))
		}
	}
}
