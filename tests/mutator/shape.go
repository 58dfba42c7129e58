package mutator

import (
	"fmt"
	"net/netip"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Shape is how the packets look.
type Shape int

// The shapes; TCP carries the options of a SYN, or timestamps in a segment with data.
const (
	TCP4 Shape = iota
	TCP6
	UDP4
	UDP6
)

func (s Shape) String() string { return [...]string{"tcp4", "tcp6", "udp4", "udp6"}[s] }

// frame is a packet of the shape, whole as a wire carries it; the mutator writes addresses, ports, numbers and flags into it.
func (s Shape) frame(t Traffic) (packet.Frame, error) {
	spec := builder.Spec{IP: builder.IP{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("198.51.100.1")}, Time: 1, Whole: true}
	if s == TCP6 || s == UDP6 {
		spec.IP = builder.IP{Src: netip.MustParseAddr("2001:db8::1"), Dst: netip.MustParseAddr("2001:db8:1::1")}
	}
	switch {
	case s == UDP4 || s == UDP6:
		if t != Data {
			return packet.Frame{}, fmt.Errorf("make %s packets: they have no handshakes", s)
		}
		spec.UDP, spec.Payload, spec.PayloadLen = &builder.UDP{}, make([]byte, 40), 1200
	case t == Data:
		spec.TCP = &builder.TCP{Window: 1000, Options: builder.Timestamps(1, 2)}
		spec.Payload, spec.PayloadLen = make([]byte, 20), 1400
	default:
		spec.TCP = &builder.TCP{Window: 1000, Options: append([]byte{2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}, 1, 3, 3, 7)}
	}
	return builder.Build(&spec)
}
