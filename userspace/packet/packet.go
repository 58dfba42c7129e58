// Package packet holds the exact, unbounded view of a packet that oracles and tests work on. It is decoded here,
// independently of the eBPF parser, so that each checks the other; tests hold it against tshark.
package packet

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/bpf/replay"
)

// Frame, Link and Direction are what the replay driver takes.
type (
	Frame     = replay.Frame
	Link      = replay.Link
	Direction = replay.Direction
)

const (
	LinkEthernet = replay.LinkEthernet
	LinkRaw      = replay.LinkRaw
	Ingress      = replay.Ingress
	Egress       = replay.Egress
)

// Valid marks the fields of a Packet that are set; names and meanings are those of bpf/include/phv.h.
type Valid uint16

const (
	IP Valid = 1 << iota
	Ports
	TCP
	UDP
	ICMP
	TSOpt
	Fragment
	Aggregate
	VLAN
	Tunnel
	AppRequest
	AppResponse
	IPID
	IsEgress
	HasQName
	RTP // Seq holds the sequence number of what looks like RTP
)

// TCP flags.
const (
	FIN uint8 = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
)

// Packet is one decoded packet.
type Packet struct {
	Time             int64 // ns
	Valid            Valid
	Src, Dst         netip.Addr // IPv4 as IPv4 addresses, not mapped
	SrcPort, DstPort uint16     // ICMP echo: the identifier in both
	Proto            uint8
	TOS              uint8 // DS field and ECN of the outermost IP header
	TCPFlags         uint8
	ICMPType         uint8
	VLAN             uint16
	IPID             uint16
	Window           uint16 // TCP: as in the header, not scaled
	Scale            uint8  // TCP with SYN: window scale option plus 1; 0 without
	Segs             uint16
	Seq, Ack         uint32 // ICMP echo: the sequence number in Seq
	TSVal, TSEcr     uint32
	Len              uint32 // bytes on the wire, link header included
	Payload          uint32 // transport payload bytes: by the IP header, none that were not on the wire
	AppID            uint64 // DNS: transaction id; NTP: the request's transmit timestamp
	QName            string // DNS: name of the first question, as it is on the wire but in lower case: HashName
	Interface        uint32
	Begin            uint64 // UDP: a hash of the first bytes of the payload, 0 where there are fewer than eight
	Enqueued         int64  // ns: Frame.Enqueued
	Queue            uint16 // Frame.Queue
}

// Has reports whether all bits of v are set.
func (p *Packet) Has(v Valid) bool { return p.Valid&v == v }
