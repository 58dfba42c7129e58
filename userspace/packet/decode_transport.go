package packet

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	tcpHeader  = 20 // bytes without options
	udpHeader  = 8
	icmpHeader = 8 // of an echo
	dnsHeader  = 12
	ntpMessage = 48
	rtpHeader  = 12
)

const (
	portDNS = 53
	portNTP = 123
)

const (
	tcpOptionsSmallest   = 12 // bytes of options below which a padded timestamp option does not fit
	tcpTimestampOption   = 10 // bytes
	tcpWindowScaleOption = 3  // bytes
	mostWindowScale      = 14 // RFC 7323, section 2.3

	// kinds: RFC 9293, section 3.1; RFC 7323
	tcpEndOfOptions = 0
	tcpNoOperation  = 1
	tcpWindowScale  = 3
	tcpTimestamps   = 8
)

// Types of echoes: RFC 792, RFC 4443.
const (
	echoRequest4, echoReply4 = 8, 0
	echoRequest6, echoReply6 = 128, 129
)

func (d *Decoder) transport(p *Packet) Reason {
	is4 := p.Src.Is4()
	switch {
	case p.Proto == unix.IPPROTO_TCP:
		return d.readTCP(p)
	case p.Proto == unix.IPPROTO_UDP:
		return d.readUDP(p)
	case p.Proto == unix.IPPROTO_ICMP && is4:
		return d.readEcho(p, echoRequest4, echoReply4)
	case p.Proto == unix.IPPROTO_ICMPV6 && !is4:
		return d.readEcho(p, echoRequest6, echoReply6)
	}
	return NoTransport
}

// payload is the length of the payload after a transport header at the cursor, by the IP header, but at most the bytes on the
// wire. A packet that is shorter than its IP header states is dropped by its receiver.
func (d *Decoder) payload(header int) uint32 {
	return uint32(max(0, min(d.l4len-header, d.wire-d.off-header)))
}

func (d *Decoder) readTCP(p *Packet) Reason {
	if len(d.data) < tcpHeader {
		return Truncated
	}
	tcp := d.data
	header := int(tcp[12]>>4) * 4
	if header < tcpHeader || header > d.l4len {
		return BadTransport
	}
	p.Valid |= Ports | TCP
	p.ports(tcp)
	p.Seq, p.Ack = binary.BigEndian.Uint32(tcp[4:]), binary.BigEndian.Uint32(tcp[8:])
	p.TCPFlags, p.Window = tcp[13], binary.BigEndian.Uint16(tcp[14:])
	p.Payload = d.payload(header)
	p.options(tcp[tcpHeader:max(min(header, len(tcp)), tcpHeader)])
	d.advance(header)
	return Parsed
}

// ports are the first fields of a TCP and a UDP header.
func (p *Packet) ports(header []byte) {
	p.SrcPort, p.DstPort = binary.BigEndian.Uint16(header), binary.BigEndian.Uint16(header[2:])
}

// options looks for the timestamps of RFC 7323, and of a SYN for the window scale, in the captured part of the options.
func (p *Packet) options(opts []byte) {
	if len(opts) < tcpOptionsSmallest && p.TCPFlags&SYN == 0 {
		return
	}
	for i := 0; i < MaxTCPOptions && len(opts) >= 2; i++ {
		size := 1
		switch kind := opts[0]; {
		case kind == tcpEndOfOptions:
			return
		case kind == tcpNoOperation:
		case kind == tcpTimestamps && opts[1] == tcpTimestampOption:
			p.setTimestamps(opts)
			if p.TCPFlags&SYN == 0 {
				return
			}
			size = tcpTimestampOption
		default:
			if size = int(opts[1]); size < 2 {
				return
			}
			if kind == tcpWindowScale && size == tcpWindowScaleOption && len(opts) >= size && p.TCPFlags&SYN != 0 {
				p.Scale = min(opts[2], mostWindowScale) + 1
			}
		}
		opts = opts[min(size, len(opts)):]
	}
}

func (p *Packet) setTimestamps(opt []byte) {
	if len(opt) < tcpTimestampOption {
		return
	}
	p.TSVal = binary.BigEndian.Uint32(opt[2:])
	p.TSEcr = binary.BigEndian.Uint32(opt[6:])
	p.Valid |= TSOpt
}

func (d *Decoder) readUDP(p *Packet) Reason {
	if len(d.data) < udpHeader {
		return Truncated
	}
	if d.l4len < udpHeader {
		return BadTransport
	}
	p.Valid |= Ports | UDP
	p.ports(d.data)
	p.Payload = d.payload(udpHeader)
	d.advance(udpHeader)
	p.Begin = begin(d.data, p.Payload)
	dns, ntp := p.SrcPort == portDNS || p.DstPort == portDNS, p.SrcPort == portNTP || p.DstPort == portNTP
	if dns {
		p.dns(d.data)
		p.name(d.data)
	}
	if ntp {
		p.ntp(d.data)
	}
	if !dns && !ntp {
		p.rtp(d.data)
	}
	return Parsed
}

// begin is a hash that distinguishes payloads: parse_begin of bpf/include/parse.h.
func begin(payload []byte, length uint32) (sum uint64) {
	const short, long = 8, 32
	factors := [...]uint64{1, 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0x632be59bd9b4e019}
	words := 0
	if length >= long && len(payload) >= long {
		words = len(factors)
	} else if length >= short && length < long && len(payload) >= short {
		words = 1
	}
	for i := range words {
		sum += factors[i] * binary.NativeEndian.Uint64(payload[8*i:])
	}
	return sum
}

// rtp looks for RFC 3550's version and takes the sequence number; RTCP's packet types are no payload types.
func (p *Packet) rtp(msg []byte) {
	if len(msg) < rtpHeader || p.Payload < rtpHeader || msg[0]>>6 != 2 {
		return
	}
	if kind := msg[1] & 0x7f; kind < 72 || kind > 76 {
		p.Seq = uint32(binary.BigEndian.Uint16(msg[2:]))
		p.Valid |= RTP
	}
}

// dns reads the transaction id and whether it is a response; the rest of a message may be cut or compressed badly.
func (p *Packet) dns(msg []byte) {
	if len(msg) < dnsHeader || p.Payload < dnsHeader {
		return
	}
	p.AppID = uint64(binary.BigEndian.Uint16(msg))
	if msg[2]&0x80 != 0 {
		p.Valid |= AppResponse
	} else {
		p.Valid |= AppRequest
	}
}

// ntp: a server's answer carries the client's transmit timestamp as its origin timestamp (RFC 5905).
func (p *Packet) ntp(msg []byte) {
	const client, server = 3, 4
	if len(msg) < ntpMessage || p.Payload < ntpMessage {
		return
	}
	switch msg[0] & 7 {
	case client:
		p.AppID = binary.BigEndian.Uint64(msg[40:])
		p.Valid |= AppRequest
	case server:
		p.AppID = binary.BigEndian.Uint64(msg[24:])
		p.Valid |= AppResponse
	}
}

// readEcho takes identifier and sequence number of a ping.
func (d *Decoder) readEcho(p *Packet, request, reply uint8) Reason {
	if len(d.data) < icmpHeader {
		return Truncated
	}
	if d.l4len < icmpHeader {
		return BadTransport
	}
	kind, id := d.data[0], binary.BigEndian.Uint16(d.data[4:])
	if kind != request && kind != reply {
		return NoTransport
	}
	p.Valid |= ICMP
	p.ICMPType = kind
	p.SrcPort, p.DstPort, p.Seq = id, id, uint32(binary.BigEndian.Uint16(d.data[6:]))
	p.Payload = d.payload(icmpHeader)
	return Parsed
}
