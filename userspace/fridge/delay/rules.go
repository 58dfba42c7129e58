package delay

import (
	"fmt"
	"strings"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Kind is a matching rule: enum match_kind of bpf/include/match.h.
type Kind uint32

// The kinds, in the order of the C enum.
const (
	TCPHandshake Kind = iota
	TCPData
	TCPTimestamp
	DNS
	NTP
	ICMPEcho
	TCPDuration
)

// KindNames are the values of the parameter `match`.
var KindNames = []string{"tcp-handshake", "tcp-data", "tcp-timestamp", "dns", "ntp", "icmp-echo", "tcp-duration"}

func (k Kind) String() string { return KindNames[k] }

// kindTitles name the measured quantity of each kind.
var kindTitles = []string{
	"delay from SYN to SYN-ACK", "delay from data to its ACK", "delay from TSval to its echo", "delay of DNS answers",
	"delay of NTP answers", "delay of echo replies", "duration of TCP flows, SYN to FIN or RST",
}

// Title names the measured quantity, for reports.
func (k Kind) Title() string { return kindTitles[k] }

// ParseKind reads the value of `match`.
func ParseKind(text string) (Kind, error) {
	for k, name := range KindNames {
		if name == text {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("no matching rule %q: there are %s", text, strings.Join(KindNames, ", "))
}

// Needs of the parser.
func (k Kind) Needs() maps.Need {
	switch k {
	case TCPTimestamp:
		return maps.NeedTSOpt
	case DNS:
		return maps.NeedDNS
	case NTP:
		return maps.NeedNTP
	}
	return 0
}

// TickNS is the default unit of stored times: 64 ns, or 65.536 us for durations of days. The clock wraps after 2^32 of them.
func (k Kind) TickNS() int64 {
	if k == TCPDuration {
		return 1 << 16
	}
	return 1 << 6
}

// Side is who sends requests in tcp-data and tcp-timestamp: enum match_side_kind.
type Side uint32

// The sides, in the order of the C enum.
const (
	AnySide Side = iota
	EgressSide
	IngressSide
)

// SideNames are the values of the parameter `side`.
var SideNames = []string{"any", "egress", "ingress"}

// ParseSide reads the value of `side`.
func ParseSide(text string) (Side, error) {
	for s, name := range SideNames {
		if name == text {
			return Side(s), nil
		}
	}
	return 0, fmt.Errorf("no side %q: there are %s", text, strings.Join(SideNames, ", "))
}

// role of a packet: enum role.
type role uint8

const (
	roleNone role = iota
	roleRequest
	roleResponse
	roleFinal
	roleUpdate
)

// question is the role of a packet, with the identity of the request that it makes or answers.
type question struct {
	role    role
	reverse bool // the request has the opposite direction
	disc    uint64
}

// ask applies the rules to a packet: classify of bpf/include/match.h.
func (r Rules) ask(p *packet.Packet) question {
	switch r.Kind {
	case TCPHandshake:
		return r.askHandshake(p)
	case TCPData:
		return r.askData(p)
	case TCPTimestamp:
		return r.askTimestamp(p)
	case DNS:
		return askApplication(p, 53)
	case NTP:
		return askApplication(p, 123)
	case ICMPEcho:
		return askEcho(p)
	}
	return askDuration(p)
}

const synAck = packet.SYN | packet.ACK

func (r Rules) askHandshake(p *packet.Packet) question {
	if !p.Has(packet.TCP) {
		return question{}
	}
	bare := p.Payload == 0 && p.TCPFlags&(packet.FIN|packet.RST) == 0
	switch p.TCPFlags & synAck {
	case packet.SYN:
		return question{role: roleRequest, disc: uint64(p.Seq + 1)}
	case synAck:
		return question{role: roleResponse, reverse: true, disc: uint64(p.Ack)}
	case packet.ACK:
		if r.Finals && bare {
			return question{role: roleFinal, disc: uint64(p.Seq)}
		}
	}
	return question{}
}

// requests reports whether a packet is one, by direction or by payload.
func (r Rules) requests(p *packet.Packet) bool {
	if r.Side == AnySide {
		return p.Payload != 0
	}
	return p.Has(packet.IsEgress) == (r.Side == EgressSide)
}

func (r Rules) askData(p *packet.Packet) question {
	if !p.Has(packet.TCP) || p.TCPFlags&packet.RST != 0 {
		return question{}
	}
	bytes := p.Payload + uint32(p.TCPFlags>>1&1) + uint32(p.TCPFlags&1)
	first := r.Side == AnySide && p.TCPFlags&synAck == packet.SYN
	switch {
	case first || r.requests(p) && bytes != 0:
		return question{role: roleRequest, disc: uint64(p.Seq + bytes)}
	case p.TCPFlags&packet.ACK != 0 && (r.Side == AnySide || !r.requests(p)):
		return question{role: roleResponse, reverse: true, disc: uint64(p.Ack)}
	}
	return question{}
}

// Shuts reports whether a packet that answers data advertises a window of 0: shuts of bpf/fridge/fridge.bpf.c.
func (r Rules) Shuts(p *packet.Packet) bool {
	return p.Window == 0 && r.ask(p).role == roleResponse && p.TCPFlags&(packet.ACK|packet.SYN|packet.FIN|packet.RST) == packet.ACK
}

func (r Rules) askTimestamp(p *packet.Packet) question {
	if !p.Has(packet.TSOpt) {
		return question{}
	}
	carries := p.Payload != 0 || p.TCPFlags&(packet.SYN|packet.FIN) != 0
	switch {
	case r.requests(p) && carries:
		return question{role: roleRequest, disc: uint64(p.TSVal)}
	case p.TCPFlags&packet.ACK != 0 && (r.Side == AnySide || !r.requests(p)):
		return question{role: roleResponse, reverse: true, disc: uint64(p.TSEcr)}
	}
	return question{}
}

func askApplication(p *packet.Packet, port uint16) question {
	switch {
	case p.Has(packet.AppRequest) && p.DstPort == port:
		return question{role: roleRequest, disc: p.AppID}
	case p.Has(packet.AppResponse) && p.SrcPort == port:
		return question{role: roleResponse, reverse: true, disc: p.AppID}
	}
	return question{}
}

func askEcho(p *packet.Packet) question {
	if !p.Has(packet.ICMP) {
		return question{}
	}
	if p.ICMPType == 8 || p.ICMPType == 128 {
		return question{role: roleRequest, disc: uint64(p.Seq)}
	}
	return question{role: roleResponse, reverse: true, disc: uint64(p.Seq)}
}

// askDuration: both directions have the same question; the order of the two ends is arbitrary but fixed.
func askDuration(p *packet.Packet) question {
	if !p.Has(packet.TCP) {
		return question{}
	}
	q := question{role: roleUpdate, reverse: endpoint(p.Src, p.SrcPort).after(endpoint(p.Dst, p.DstPort))}
	switch {
	case p.TCPFlags&synAck == packet.SYN:
		q.role = roleRequest
	case p.TCPFlags&(packet.FIN|packet.RST) != 0:
		q.role = roleResponse
	}
	return q
}
