package lean

import (
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// piece is a packet of a TCP flow: us after the one before it, number of the first byte, payload, IPv4 identification.
type piece struct {
	after     int64
	seq, size uint32
	id        uint16
	flags     uint8
}

// lossCase is a flow and what it lost, in bytes.
type lossCase struct {
	name   string
	six    bool
	pieces []piece
	lost   float64
}

const ms = 1000 // us

// 100 bytes a packet unless stated otherwise.
var losses = []lossCase{
	{name: "in order", pieces: []piece{{1, 0, 100, 1, 0}, {1, 100, 100, 2, 0}, {1, 200, 100, 3, 0}}},
	{name: "one counter for all destinations", pieces: []piece{{1, 0, 100, 1, 0}, {1, 100, 100, 31, 0}, {1, 200, 100, 40, 0}, {1, 300, 100, 77, 0}}},
	{name: "lost", pieces: []piece{{1, 0, 100, 1, 0}, {1, 200, 100, 3, 0}, {1, 300, 100, 4, 0}}, lost: 100},
	{name: "lost and sent again", pieces: []piece{{1, 0, 100, 1, 0}, {1, 200, 100, 3, 0}, {1, 300, 100, 4, 0}, {1, 100, 100, 5, 0}}, lost: 100},
	{name: "lost and sent again, one counter", pieces: []piece{{1, 0, 100, 1, 0}, {1, 200, 100, 33, 0}, {1, 100, 100, 50, 0}, {1, 300, 100, 90, 0}}, lost: 100},
	{name: "late", pieces: []piece{{1, 0, 100, 1, 0}, {1, 200, 100, 3, 0}, {1, 100, 100, 2, 0}, {1, 300, 100, 4, 0}}},
	{name: "late by 9 ms", pieces: []piece{{1, 0, 100, 1, 0}, {1, 200, 100, 3, 0}, {9 * ms, 100, 100, 2, 0}, {1, 300, 100, 4, 0}}},
	{name: "late, one counter", pieces: []piece{{1, 0, 100, 1, 0}, {1, 200, 100, 33, 0}, {1, 100, 100, 20, 0}, {1, 300, 100, 44, 0}}},
	{name: "two missing, one late", pieces: []piece{{1, 0, 100, 1, 0}, {1, 300, 100, 4, 0}, {1, 200, 100, 3, 0}, {1, 400, 100, 5, 0}}, lost: 100},
	{name: "sent again though it arrived", pieces: []piece{{1, 0, 100, 1, 0}, {1, 100, 100, 2, 0}, {1, 0, 100, 3, 0}, {1, 200, 100, 4, 0}}},
	{name: "copies", pieces: []piece{{1, 0, 100, 1, 0}, {1, 0, 100, 1, 0}, {1, 200, 100, 3, 0}, {1, 200, 100, 3, 0}}, lost: 100},
	{name: "keep-alive", pieces: []piece{{1, 0, 100, 1, 0}, {1, 99, 1, 2, 0}, {1, 99, 0, 3, 0}, {1, 100, 100, 4, 0}}},
	{name: "identification wraps", pieces: []piece{{1, 0, 100, 65534, 0}, {1, 200, 100, 2, 0}, {1, 100, 100, 65535, 0}}},
	{name: "numbers wrap", pieces: []piece{{1, ^uint32(99), 100, 1, 0}, {1, 100, 100, 3, 0}}, lost: 100},
	{name: "no identification: late", pieces: []piece{{1, 0, 100, 0, 0}, {1, 200, 100, 0, 0}, {2 * ms, 100, 100, 0, 0}}},
	{name: "no identification: sent again", pieces: []piece{{1, 0, 100, 0, 0}, {1, 200, 100, 0, 0}, {9 * ms, 100, 100, 0, 0}}, lost: 100},
	{name: "IPv6: late", six: true, pieces: []piece{{1, 0, 100, 0, 0}, {1, 200, 100, 0, 0}, {2 * ms, 100, 100, 0, 0}}},
	{name: "IPv6: sent again", six: true, pieces: []piece{{1, 0, 100, 0, 0}, {1, 200, 100, 0, 0}, {9 * ms, 100, 100, 0, 0}}, lost: 100},
	{name: "port used again", pieces: []piece{{1, 1 << 30, 100, 1, 0}, {1, 0, 0, 2, packet.SYN}, {1, 1, 100, 3, 0}, {1, 201, 100, 5, 0}}, lost: 100},
	{name: "port used again, without its SYN", pieces: []piece{{1, 1 << 30, 100, 1, 0}, {1, 1, 100, 3, 0}, {1, 201, 100, 5, 0}}, lost: 100},
	{name: "another connection above", pieces: []piece{{1, 0, 100, 1, 0}, {1, 1 << 20, 100, 3, 0}, {1, 1<<20 + 100, 100, 4, 0}}},
	{name: "handshake and end", pieces: []piece{{1, 0, 0, 0, packet.SYN}, {1, 1, 100, 3, 0}, {1, 101, 0, 4, packet.FIN}, {1, 102, 0, 5, 0}}},
}

func (c lossCase) frames(n int) (frames []packet.Frame) {
	at := int64(n+1) * 1e9
	for _, p := range c.pieces {
		at += p.after * 1000
		s := &builder.Spec{Time: at, TCP: &builder.TCP{SrcPort: uint16(20000 + n), DstPort: 80, Seq: p.seq, Flags: packet.ACK | p.flags},
			Payload: make([]byte, p.size), IP: builder.IP{Src: netip.MustParseAddr("10.77.0.1"), Dst: netip.MustParseAddr("10.77.0.2"), ID: p.id}}
		if c.six {
			s.IP = builder.IP{Src: netip.MustParseAddr("2001:db8::1"), Dst: netip.MustParseAddr("2001:db8::2")}
		}
		frames = append(frames, builder.MustBuild(s))
	}
	return frames
}

// The default's rule, packet for packet: gaps of the sequence are lost, unless the packet itself arrives late; a
// repetition subtracts nothing, and the identifications of other packets of the host have no effect.
func TestLossOfBytes(t *testing.T) {
	var all []packet.Frame
	for n, c := range losses {
		all = append(all, c.frames(n)...)
	}
	line := ordered(t, &built{frames: all}, session.Config{Seed: 5}, map[string]string{"stat": "loss"})
	got, truth := listed(t, &line.Report, "loss"), listed(t, line.Truth, "loss")
	for n, c := range losses {
		name := flowName{"10.77.0.1", "10.77.0.2", int64(20000 + n), int64(80)}
		if c.six {
			name = flowName{"2001:db8::1", "2001:db8::2", int64(20000 + n), int64(80)}
		}
		if got[name] != c.lost || truth[name] != c.lost {
			t.Errorf("%s: %g bytes lost, the oracle has %g, want %g", c.name, got[name], truth[name], c.lost)
		}
	}
}
