package twins

import (
	"encoding/binary"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// side is who measures a packet.
type side int

const (
	both     side = iota
	twinOnly      // given to the twin alone, which must not touch a register for it
	hostOnly
	neither
)

// Differences of the parsers, which all twins share (docs/twins.md).
const (
	unread  = "headers that the twin does not read"
	lengths = "lengths that the twin does not check"
)

// whose returns who measures a frame, and which difference it is if not both do. It parses the headers by itself, with the
// host's decoder in Go as the other opinion: neither the twin's parser nor the bytecode's is asked.
func (p *pair) whose(f *packet.Frame) (side, string) {
	var host packet.Packet
	p.decoder.Decode(f, packet.DecodeOptions{}, &host)
	twin := walk(f.Data)
	switch {
	case twin.unread || twin.labels && host.Has(packet.IP):
		return twinOnly, unread
	case twin.ip && (twin.end > int(f.Len) || twin.end <= twin.from):
		return neither, lengths // it ends before the end in its IP header, or has no length (segmentation offload)
	case twin.ip && !host.Has(packet.IP):
		return hostOnly, lengths // which must not touch a register for it
	case twin.ip != host.Has(packet.IP), twin.ports != host.Has(packet.Ports), twin.tcp != host.Has(packet.TCP):
		return neither, lengths
	}
	for i, d := range p.twin.Differences {
		if p.packetIs[i] == nil || !p.packetIs[i](&host) {
			continue
		}
		if d.Ignored {
			return twinOnly, d.Name
		}
		return neither, d.Name
	}
	return both, ""
}

// seen is what the twin's parser finds.
type seen struct {
	ip, ports, tcp bool
	v4             bool
	from, end      int  // where an IP packet without a length would end, and where this one does by its header
	unread         bool // options, extension headers: the walk ends in front of an IP header
	labels         bool // ... in front of a fifth label, or of a protocol field of one byte
	short          bool // it ends after the last byte
	fragment       bool // not the first one
	udp            bool // only ports are looked at
	cut            bool // within the header of a DNS message, by its IP header
}

// reasons are the actions of the table in p4/include/reasons.p4.
var reasons = []string{"parsed", "unread", "fragment", "no_transport", "not_ip", "truncated"}

// reason why this packet was not measured; ports: the twin reads those of UDP; messages: those of DNS.
func (s seen) reason(ports, messages bool) string {
	switch {
	case s.short && (!s.udp || ports), s.cut && messages:
		return "truncated"
	case s.tcp:
		return "parsed"
	case s.unread:
		return "unread"
	case s.fragment && s.v4:
		return "fragment"
	case s.ip:
		return "no_transport"
	}
	return "not_ip"
}

// marked is a packet with both ECN bits set in its IP header, and the corresponding checksum.
func marked(b []byte) []byte {
	ip, b := walk(b), slices.Clone(b)
	if !ip.v4 {
		b[ip.from-40+1] |= 3 << 4
		return b
	}
	header := b[ip.from : ip.from+20]
	header[1] |= 3
	header[10], header[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum+sum>>16))
	return b
}

var extensions = []byte{0, 43, 44, 51, 60, 135, 139, 140}

func walk(b []byte) seen {
	if len(b) < 14 {
		return seen{short: true}
	}
	kind, at := binary.BigEndian.Uint16(b[12:]), 14
	for range 3 {
		if kind != 0x8100 && kind != 0x88a8 && kind != 0x9100 {
			break
		}
		if len(b) < at+4 {
			return seen{short: true}
		}
		kind, at = binary.BigEndian.Uint16(b[at+2:]), at+4
	}
	switch kind {
	case 0x8864:
		return walkPPP(b, at)
	case 0x8847, 0x8848:
		return walkLabels(b, at)
	case 0x0800:
		return walk4(b, at)
	case 0x86dd:
		return walk6(b, at)
	}
	return seen{}
}

func walkPPP(b []byte, at int) seen {
	if len(b) < at+8 {
		return seen{short: true}
	}
	if b[at] != 0x11 || b[at+1] != 0 {
		return seen{}
	}
	switch protocol := binary.BigEndian.Uint16(b[at+6:]); {
	case protocol == 0x21:
		return walk4(b, at+8)
	case protocol == 0x57:
		return walk6(b, at+8)
	case protocol>>8 == 0x21 || protocol>>8 == 0x57:
		return seen{labels: true}
	}
	return seen{}
}

func walkLabels(b []byte, at int) seen {
	for label := 0; ; label++ {
		if label == 4 {
			return seen{labels: true}
		}
		if len(b) < at+4 {
			return seen{short: true}
		}
		at += 4
		if b[at-2]&1 != 0 {
			break
		}
	}
	if len(b) < at+1 {
		return seen{short: true}
	}
	switch b[at] >> 4 {
	case 4:
		return walk4(b, at)
	case 6:
		return walk6(b, at)
	}
	return seen{}
}

func walk4(b []byte, at int) seen {
	if len(b) < at+20 {
		return seen{short: true}
	}
	if b[at]>>4 != 4 || b[at]&15 < 5 {
		return seen{}
	}
	if b[at]&15 > 5 || b[at+9] == 51 {
		return seen{unread: true}
	}
	ip := seen{ip: true, v4: true, from: at, end: at + int(binary.BigEndian.Uint16(b[at+2:]))}
	if binary.BigEndian.Uint16(b[at+6:])&0x1fff != 0 {
		ip.fragment = true
		return ip
	}
	return ip.transport(b, at+20, b[at+9])
}

func walk6(b []byte, at int) seen {
	if len(b) < at+40 {
		return seen{short: true}
	}
	if b[at]>>4 != 6 {
		return seen{}
	}
	if slices.Contains(extensions, b[at+6]) {
		return seen{unread: true}
	}
	ip := seen{ip: true, from: at + 40, end: at + 40 + int(binary.BigEndian.Uint16(b[at+4:]))}
	return ip.transport(b, at+40, b[at+6])
}

func (s seen) transport(b []byte, at int, protocol byte) seen {
	switch protocol {
	case 17:
		s.udp, s.ports = true, len(b) >= at+4
		s.short = !s.ports
		s.cut = s.ports && s.end-at >= 20 && len(b) < at+20 && (binary.BigEndian.Uint16(b[at:]) == 53 || binary.BigEndian.Uint16(b[at+2:]) == 53)
	case 6:
		s.tcp = len(b) >= at+20 && b[at+12]>>4 >= 5
		s.ports, s.short = s.tcp, len(b) < at+20
	}
	return s
}
