package lean

import (
	"io"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// built are frames that were built beforehand.
type built struct {
	frames []packet.Frame
	next   int
}

func (b *built) Next(f *packet.Frame) error {
	if b.next == len(b.frames) {
		return io.EOF
	}
	*f = b.frames[b.next]
	b.next++
	return nil
}

func (b *built) Progress() (read, total int64) { return 0, 0 }
func (b *built) Skipped() map[string]uint64    { return nil }
func (b *built) Close() error                  { return nil }

// numbered makes a flow with the port from identifiers: IPv4's, or RTP's where rtp is set and IPv4's is 0.
func numbered(port uint16, rtp bool, ids []uint16) (frames []packet.Frame) {
	for n, id := range ids {
		s := &builder.Spec{Time: int64(n+1) * 1e6, UDP: &builder.UDP{SrcPort: port, DstPort: 5004}, Payload: make([]byte, 20),
			IP: builder.IP{Src: netip.MustParseAddr("10.77.0.1"), Dst: netip.MustParseAddr("10.77.0.2"), ID: id}}
		if rtp {
			s.IP.ID = 0
			copy(s.Payload, []byte{0x80, 96, byte(id >> 8), byte(id)})
		}
		frames = append(frames, builder.MustBuild(s))
	}
	return frames
}

// The rule, packet for packet: a gap counts from the third packet in a row on, a late packet subtracts it, a copy has no effect,
// a jump or a constant never counts, numbers wrap. IPv4's identification and RTP's number alike.
func TestIdentifiers(t *testing.T) {
	cases := []struct {
		name string
		ids  []uint16
		lost float64
	}{
		{"one missing", []uint16{1, 2, 3, 5, 6}, 1},
		{"three missing", []uint16{1, 2, 3, 5, 8, 9}, 3},
		{"late", []uint16{1, 2, 3, 5, 4, 6, 9}, 2},
		{"copies", []uint16{1, 1, 2, 2, 3, 3, 5, 5}, 1},
		{"wrap", []uint16{65534, 65535, 0, 2, 3}, 1},
		{"constant", []uint16{7, 7, 7, 7, 7}, 0},
		{"random", []uint16{9, 40000, 123, 60001, 7000, 30000}, 0},
		{"not proven", []uint16{1, 3, 500, 502, 9}, 0},
		{"jump in between", []uint16{1, 2, 3, 900, 902, 903, 905}, 1},
	}
	for _, id := range []string{"ipid", "rtp"} {
		var all []packet.Frame
		for n, c := range cases {
			all = append(all, numbered(uint16(20000+n), id == "rtp", c.ids)...)
		}
		line := ordered(t, &built{frames: all}, session.Config{Seed: 5}, map[string]string{"stat": "loss", "loss.id": id})
		got, truth := listed(t, &line.Report, "loss"), listed(t, line.Truth, "loss")
		for n, c := range cases {
			name := flowName{"10.77.0.1", "10.77.0.2", int64(20000 + n), int64(5004)}
			if got[name] != c.lost || truth[name] != c.lost {
				t.Errorf("%s, %s: %g lost, the oracle has %g, want %g", id, c.name, got[name], truth[name], c.lost)
			}
		}
	}
}
