// Package builder makes frames: any combination of headers from a Spec, and plain packets in bulk from
// packet.Packet through a Packer (several million a second). Payload bytes that are never read are left out: the
// frame is then what a capture with a snap length would hold, and Frame.Len is what was on the wire.
package builder

import (
	"errors"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// ErrSpec is wrapped if a Spec describes no packet.
var ErrSpec = errors.New("no packet can look like that")

// Protocol numbers of a Spec.
const (
	ProtoHopByHop    = 0
	ProtoICMP        = 1
	ProtoIPIP        = 4
	ProtoTCP         = 6
	ProtoUDP         = 17
	ProtoIPv6        = 41
	ProtoRouting     = 43
	ProtoFragment    = 44
	ProtoGRE         = 47
	ProtoESP         = 50
	ProtoAH          = 51
	ProtoICMPv6      = 58
	ProtoNoNext      = 59
	ProtoDestination = 60
)

// EtherTypes.
const (
	EtherIPv4    = 0x0800
	EtherARP     = 0x0806
	EtherVLAN    = 0x8100
	EtherIPv6    = 0x86dd
	EtherMPLS    = 0x8847
	EtherPPPoE   = 0x8864
	EtherQinQ    = 0x88a8
	EtherBridged = 0x6558 // Ethernet inside of GRE or GENEVE
)

// Spec describes one packet from the link header to the payload. What is zero or nil is left out.
type Spec struct {
	Time           int64 // ns
	Link           packet.Link
	Direction      packet.Direction
	Interface      uint32
	SrcMAC, DstMAC [6]byte
	VLANs          []VLAN   // outermost first
	PPPoE          bool     // a session header
	MPLS           []uint32 // labels, outermost first
	EtherType      uint16   // of a frame that is not IP (IP.Src is not set)

	Outer *Outer // a tunnel around everything below
	IP    IP

	// At most one of these; without any, Proto is the protocol of the payload.
	TCP   *TCP
	UDP   *UDP
	Echo  *Echo
	Proto uint8

	Payload    []byte // bytes that are there
	PayloadLen int    // bytes on the wire, at least len(Payload); 0: as many as there are
	// Whole puts zeros for the rest of PayloadLen, so that the frame can be sent.
	Whole bool
	// Checksums computes those of IPv4, TCP, UDP and ICMP; missing payload counts as zeros.
	Checksums bool
}

// VLAN is a tag. TPID 0 is 802.1Q.
type VLAN struct {
	ID       uint16
	Priority uint8
	TPID     uint16
}

// IP is a network header; the addresses choose the version.
type IP struct {
	Src, Dst netip.Addr
	TOS, TTL uint8 // TTL 0: 64
	ID       uint16
	// Fragment: offset in bytes, a multiple of 8. IPv6 gets a fragment header, after Extensions.
	Offset        int
	MoreFragments bool
	DontFragment  bool
	Options       []byte      // IPv4; filled up with zeros to a multiple of 4
	Extensions    []Extension // IPv6, and AH in IPv4
	// ZeroLength leaves the length field 0, as a segmentation offload does. Packets above 65,535 bytes have it
	// anyway: IPv4 as BIG TCP, IPv6 with a jumbo payload option.
	ZeroLength bool
}

// Extension is an extension header; Body is what follows its first two bytes, padded with zeros.
type Extension struct {
	Proto uint8
	Body  []byte
}

// TCP is a segment's header.
type TCP struct {
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8
	Window           uint16
	Options          []byte // filled up with zeros to a multiple of 4, at most 40
}

// UDP is a datagram's header.
type UDP struct {
	SrcPort, DstPort uint16
}

// Echo is an ICMP or ICMPv6 echo; Reply chooses the type.
type Echo struct {
	Reply   bool
	ID, Seq uint16
}

// Tunnel is a kind of encapsulation.
type Tunnel uint8

// IPIP is also 6in4: the inner version decides.
const (
	IPIP Tunnel = iota
	GRE
	VXLAN
	GENEVE
)

// Outer is the tunnel that carries a Spec's packet.
type Outer struct {
	Kind     Tunnel
	Src, Dst netip.Addr
	SrcPort  uint16 // VXLAN, GENEVE
	VNI      uint32 // VXLAN, GENEVE
	// Bridged puts an Ethernet header inside (GRE, GENEVE; VXLAN always does), with InnerVLANs.
	Bridged    bool
	InnerVLANs []VLAN
	GREKey     bool
	GRESeq     bool
	GRESum     bool
	Options    []byte // GENEVE, filled up with zeros to a multiple of 4
}
