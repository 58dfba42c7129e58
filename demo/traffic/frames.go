package traffic

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// dns is a message with one question for example.org (type A), as a client asks or a server answers it.
func dns(id uint16, response bool) []byte {
	const asks, answers = 0x0100, 0x8180 // recursion desired; ... and available
	flags := uint16(asks)
	if response {
		flags = answers
	}
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, id), flags)
	return append(append(b, 0, 1, 0, 0, 0, 0, 0, 0), "\x07example\x03org\x00\x00\x01\x00\x01"...)
}

// ntp is a request or a response; stamp is the request's transmit timestamp in both.
func ntp(stamp uint64, response bool) []byte {
	const version, client, server, originate, transmit = 4 << 3, 3, 4, 24, 40
	b := make([]byte, 48)
	b[0] = version | client
	at := transmit
	if response {
		b[0], b[1], at = version|server, 2, originate
		binary.BigEndian.PutUint64(b[transmit:], ^stamp)
	}
	binary.BigEndian.PutUint64(b[at:], stamp)
	return b
}

const (
	ethernetBytes = 14
	ipv4Bytes     = 20
	udpBytes      = 8
	synBytes      = 24 // with one option: the segment size
)

// SYN is the first packet of a connection over IPv4 as a scanner writes it: a whole frame.
func (w *Wire) SYN(from, to netip.AddrPort, sequence uint32) []byte {
	b := w.header(from.Addr(), to.Addr(), unix.IPPROTO_TCP, synBytes)
	t := b[ethernetBytes+ipv4Bytes:]
	ports(t, from, to)
	binary.BigEndian.PutUint32(t[4:], sequence)
	t[12], t[13] = synBytes/4<<4, packet.SYN
	binary.BigEndian.PutUint16(t[14:], 1024) // window
	copy(t[20:], []byte{2, 4, 5, 180})       // segments of 1,460 bytes
	binary.BigEndian.PutUint16(t[16:], transportSum(from, to, unix.IPPROTO_TCP, t))
	return b
}

// Datagram over IPv4 with a payload of zeros: a whole frame.
func (w *Wire) Datagram(from, to netip.AddrPort, payload int) []byte {
	b := w.header(from.Addr(), to.Addr(), unix.IPPROTO_UDP, udpBytes+payload)
	u := b[ethernetBytes+ipv4Bytes:]
	ports(u, from, to)
	binary.BigEndian.PutUint16(u[4:], uint16(len(u)))
	binary.BigEndian.PutUint16(u[6:], transportSum(from, to, unix.IPPROTO_UDP, u))
	return b
}

// header is a frame with space for length bytes after its IPv4 header.
func (w *Wire) header(from, to netip.Addr, proto byte, length int) []byte {
	b := make([]byte, ethernetBytes+ipv4Bytes+length)
	copy(b, w.Hop[:])
	copy(b[6:], w.Source[:])
	binary.BigEndian.PutUint16(b[12:], unix.ETH_P_IP)
	h := b[ethernetBytes:][:ipv4Bytes]
	h[0] = 4<<4 | ipv4Bytes/4
	binary.BigEndian.PutUint16(h[2:], uint16(ipv4Bytes+length))
	h[8], h[9] = 64, proto
	copy(h[12:], from.AsSlice())
	copy(h[16:], to.AsSlice())
	binary.BigEndian.PutUint16(h[10:], folded(sum(0, h)))
	return b
}

func ports(b []byte, from, to netip.AddrPort) {
	binary.BigEndian.PutUint16(b, from.Port())
	binary.BigEndian.PutUint16(b[2:], to.Port())
}

func transportSum(from, to netip.AddrPort, proto byte, segment []byte) uint16 {
	s := sum(uint32(proto)+uint32(len(segment)), from.Addr().AsSlice())
	return folded(sum(sum(s, to.Addr().AsSlice()), segment))
}

// sum adds 16-bit words (RFC 1071).
func sum(s uint32, b []byte) uint32 {
	for ; len(b) > 1; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}

func folded(s uint32) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}
