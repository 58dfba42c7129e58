package delay

import (
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

var (
	client = netip.MustParseAddr("192.0.2.1")
	server = netip.MustParseAddr("198.51.100.2")
)

// tcp makes a segment from the client, or from the server when back is set.
func tcp(at int64, back bool, flags uint8, seq, ack, payload uint32) *packet.Packet {
	p := &packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Src: client, Dst: server, SrcPort: 40000,
		DstPort: 443, TCPFlags: flags, Seq: seq, Ack: ack, Payload: payload, Segs: 1, Len: 54 + payload}
	if back {
		p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	}
	return p
}

const (
	ms      = int64(1e6)
	longest = 274e9
)

type step struct {
	p    *packet.Packet
	want Event
}

func play(t *testing.T, r Rules, steps []step) {
	t.Helper()
	if r.Longest == 0 {
		r.Longest = longest
	}
	tracker := NewTracker(r)
	for i, s := range steps {
		if got := tracker.Packet(s.p); got != s.want {
			t.Errorf("packet %d: %+v, want %+v", i, got, s.want)
		}
	}
}

func TestHandshakeLegs(t *testing.T) {
	const max = ^uint32(0) // sequence numbers wrap
	play(t, Rules{Kind: TCPHandshake, Finals: true}, []step{
		{tcp(1*ms, false, packet.SYN|0xc0, max, 0, 0), Event{Outcome: Request}}, // ECN flags
		{tcp(2*ms, false, packet.SYN, max, 0, 0), Event{Outcome: Repeated}},
		{tcp(5*ms, true, packet.SYN|packet.ACK, 100, 0, 0), Event{Outcome: Answered, Delay: 4 * ms, Reverse: true}},
		{tcp(6*ms, true, packet.SYN|packet.ACK, 100, 0, 0), Event{Outcome: Unknown}},
		{tcp(8*ms, false, packet.ACK, 0, 101, 0), Event{Outcome: Finished, Delay: 7 * ms, Second: 3 * ms}},
		{tcp(9*ms, false, packet.ACK, 0, 101, 0), Event{Outcome: Unknown}},
	})
}

func TestHandshakeRestart(t *testing.T) {
	play(t, Rules{Kind: TCPHandshake, Restart: true}, []step{
		{tcp(1*ms, false, packet.SYN, 7, 0, 0), Event{Outcome: Request}},
		{tcp(1001*ms, false, packet.SYN, 7, 0, 0), Event{Outcome: Repeated}},
		{tcp(1005*ms, true, packet.SYN|packet.ACK, 100, 8, 0), Event{Outcome: Answered, Delay: 4 * ms, Reverse: true}},
		{tcp(1008*ms, false, packet.ACK, 8, 101, 0), Event{}}, // legs are not enabled
	})
}

// TestData: the expected ACK is sequence number plus payload, one more for SYN and FIN, and an ACK of two segments
// answers the last only.
func TestData(t *testing.T) {
	ack := packet.ACK
	play(t, Rules{Kind: TCPData}, []step{
		{tcp(1*ms, false, packet.SYN, 999, 0, 0), Event{Outcome: Request}},
		{tcp(2*ms, true, packet.SYN|ack, 5, 1000, 0), Event{Outcome: Answered, Delay: 1 * ms, Reverse: true}},
		{tcp(3*ms, false, ack, 1000, 6, 500), Event{Outcome: Request}},
		{tcp(4*ms, false, ack, 1500, 6, 500), Event{Outcome: Request}},
		{tcp(7*ms, true, ack, 6, 2000, 0), Event{Outcome: Answered, Delay: 3 * ms, Reverse: true}},
		{tcp(8*ms, true, ack, 6, 2000, 0), Event{Outcome: Unknown}},
		{tcp(9*ms, false, ack|packet.FIN, 2000, 6, 9), Event{Outcome: Request}},
		{tcp(10*ms, true, ack, 6, 2010, 0), Event{Outcome: Answered, Delay: 1 * ms, Reverse: true}},
		{tcp(11*ms, true, packet.RST|ack, 6, 2010, 0), Event{}},
	})
}

// TestDataSides: on a host, what it sends asks and what it receives answers, also with payload on it.
func TestDataSides(t *testing.T) {
	out := tcp(1*ms, false, packet.ACK, 1000, 6, 500)
	out.Valid |= packet.IsEgress
	play(t, Rules{Kind: TCPData, Side: EgressSide}, []step{
		{out, Event{Outcome: Request}},
		{tcp(4*ms, true, packet.ACK, 6, 1500, 700), Event{Outcome: Answered, Delay: 3 * ms, Reverse: true}},
		{tcp(5*ms, true, packet.SYN, 6, 0, 0), Event{}}, // a connection from outside: not asked by this host
	})
	play(t, Rules{Kind: TCPData, Side: IngressSide}, []step{
		{out, Event{Outcome: Unknown}},
		{tcp(4*ms, true, packet.ACK, 6, 1500, 700), Event{Outcome: Request}},
	})
}

func TestTimestamp(t *testing.T) {
	with := func(p *packet.Packet, val, ecr uint32) *packet.Packet {
		p.Valid |= packet.TSOpt
		p.TSVal, p.TSEcr = val, ecr
		return p
	}
	play(t, Rules{Kind: TCPTimestamp}, []step{
		{with(tcp(1*ms, false, packet.ACK, 1, 1, 10), 77, 5), Event{Outcome: Request}},
		{with(tcp(2*ms, false, packet.ACK, 11, 1, 10), 77, 5), Event{Outcome: Repeated}},
		{with(tcp(4*ms, true, packet.ACK, 1, 21, 0), 900, 77), Event{Outcome: Answered, Delay: 3 * ms, Reverse: true}},
		{tcp(5*ms, true, packet.ACK, 1, 21, 0), Event{}},
	})
}

func udp(at int64, back bool, port uint16, valid packet.Valid, id uint64) *packet.Packet {
	p := tcp(at, back, 0, 0, 0, 40)
	p.Valid, p.Proto, p.AppID = packet.IP|packet.Ports|packet.UDP|valid, 17, id
	if back {
		p.SrcPort = port
	} else {
		p.DstPort = port
	}
	return p
}

func TestApplications(t *testing.T) {
	for kind, port := range map[Kind]uint16{DNS: 53, NTP: 123} {
		play(t, Rules{Kind: kind}, []step{
			{udp(1*ms, false, port, packet.AppRequest, 9), Event{Outcome: Request}},
			{udp(2*ms, true, port, packet.AppResponse, 8), Event{Outcome: Unknown}},
			{udp(3*ms, true, port, packet.AppResponse, 9), Event{Outcome: Answered, Delay: 2 * ms, Reverse: true}},
			{udp(4*ms, false, 54, packet.AppRequest, 9), Event{}},
		})
	}
}

func TestEcho(t *testing.T) {
	echo := func(at int64, back bool, kind uint8, seq uint32) *packet.Packet {
		p := tcp(at, back, 0, seq, 0, 56)
		p.Valid, p.Proto, p.ICMPType, p.SrcPort, p.DstPort = packet.IP|packet.ICMP, 1, kind, 3, 3
		return p
	}
	play(t, Rules{Kind: ICMPEcho}, []step{
		{echo(1*ms, false, 8, 1), Event{Outcome: Request}},
		{echo(2*ms, true, 0, 2), Event{Outcome: Unknown}},
		{echo(3*ms, true, 0, 1), Event{Outcome: Answered, Delay: 2 * ms, Reverse: true}},
	})
}

// TestDuration: a flow ends with the first FIN or RST of either side, and brings its volume in both directions.
func TestDuration(t *testing.T) {
	ack := packet.ACK
	for _, fromServer := range []bool{false, true} {
		play(t, Rules{Kind: TCPDuration}, []step{
			{tcp(1*ms, false, packet.SYN, 1, 0, 0), Event{Outcome: Request}},
			{tcp(2*ms, true, packet.SYN|ack, 1, 2, 0), Event{}},
			{tcp(3*ms, false, ack, 2, 2, 46), Event{}},
			{tcp(9*ms, fromServer, packet.FIN|ack, 48, 2, 0), Event{Outcome: Answered, Delay: 8 * ms, Reverse: fromServer,
				Volume: Volume{Bytes: 4*54 + 46, Packets: 4}}},
			{tcp(9*ms, !fromServer, packet.FIN|ack, 2, 48, 0), Event{Outcome: Unknown}},
		})
	}
}

// TestForget: what is older than can be measured is dropped, and its memory with it.
func TestForget(t *testing.T) {
	tracker := NewTracker(Rules{Kind: TCPHandshake, Longest: 10 * ms})
	for i := range 10000 {
		tracker.Packet(tcp(int64(i)*ms, false, packet.SYN, uint32(i), 0, 0))
		if n := tracker.Pending(); n > 11 {
			t.Fatalf("%d requests wait after %d ms", n, i)
		}
	}
	if e := tracker.Packet(tcp(10011*ms, true, packet.SYN|packet.ACK, 0, 10000, 0)); e.Outcome != Unknown {
		t.Errorf("an answer after 12 ms: %+v", e)
	}
}

func TestParseNames(t *testing.T) {
	for k, name := range KindNames {
		if got, err := ParseKind(name); err != nil || got != Kind(k) || got.Title() == "" {
			t.Errorf("ParseKind(%s) = %v, %v", name, got, err)
		}
	}
	for s, name := range SideNames {
		if got, err := ParseSide(name); err != nil || got != Side(s) {
			t.Errorf("ParseSide(%s) = %v, %v", name, got, err)
		}
	}
	if _, err := ParseKind("tcp"); err == nil {
		t.Error("ParseKind(tcp) is accepted")
	}
	if _, err := ParseSide("both"); err == nil {
		t.Error("ParseSide(both) is accepted")
	}
}

// The longest delay is measured still, and what is a nanosecond longer is not.
func TestLongestDelay(t *testing.T) {
	for over, want := range map[int64]Event{0: {Outcome: Answered, Delay: 5 * ms, Reverse: true}, 1: {Outcome: Unknown}} {
		play(t, Rules{Kind: TCPHandshake, Longest: 5 * ms}, []step{
			{tcp(1*ms, false, packet.SYN, 7, 0, 0), Event{Outcome: Request}},
			{tcp(6*ms+over, true, packet.SYN|packet.ACK, 100, 8, 0), want},
		})
	}
}
