package names

import (
	"encoding/binary"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

const (
	protocolUDP = 17
	portDNS     = 53
	udpHeader   = 8
)

// network is the IP packet in a frame; nil if none follows an Ethernet header and at most two VLAN tags.
func network(f *packet.Frame) []byte {
	b := f.Data
	if f.Link == packet.LinkRaw {
		return b
	}
	at := 12
	for range 3 {
		if len(b) < at+2 {
			return nil
		}
		switch binary.BigEndian.Uint16(b[at:]) {
		case 0x8100, 0x88a8:
			at += 4
		case 0x0800, 0x86dd:
			return b[at+2:]
		default:
			return nil
		}
	}
	return nil
}

// answer is the DNS message in an unfragmented UDP packet from port 53; nil for others. IPv6 packets with extension headers are not read.
func answer(ip []byte) []byte {
	if len(ip) == 0 {
		return nil
	}
	at := 0
	switch ip[0] >> 4 {
	case 4:
		at = int(ip[0]&15) * 4
		if at < 20 || len(ip) < at || ip[9] != protocolUDP || binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 {
			return nil
		}
	case 6:
		if at = 40; len(ip) < at || ip[6] != protocolUDP {
			return nil
		}
	default:
		return nil
	}
	udp := ip[at:]
	if len(udp) < udpHeader || binary.BigEndian.Uint16(udp) != portDNS {
		return nil
	}
	length := int(binary.BigEndian.Uint16(udp[4:]))
	return udp[udpHeader:max(udpHeader, min(len(udp), length))]
}
