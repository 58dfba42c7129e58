// Package handshakes sends what the twins that match TCP handshakes get beside the traffic of all twins.
package handshakes

import (
	"errors"
	"net/netip"

	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Fins sends handshakes of both IP versions whose first packets have FIN, which the rules for SYN and SYN-ACK do not ask for; no other twin gets them.
func Fins(d twin.Driver) error {
	var errs []error
	for n, ends := range [][2]netip.Addr{
		{netip.AddrFrom4([4]byte{77, 2, 0, 1}), netip.AddrFrom4([4]byte{88, 0, 0, 1})},
		{netip.AddrFrom16([16]byte{0x20, 1, 15: 1}), netip.AddrFrom16([16]byte{0x20, 2, 15: 1})},
	} {
		for port := range uint16(8) { // some survive where requests are dropped at random
			syn := packet.Packet{Time: d.Now() + 1e6, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1,
				TCPFlags: packet.SYN | packet.FIN, Seq: uint32(100 * n), Src: ends[0], Dst: ends[1], SrcPort: 2048 + port, DstPort: 443}
			reply := syn
			reply.Src, reply.Dst, reply.SrcPort, reply.DstPort = syn.Dst, syn.Src, syn.DstPort, syn.SrcPort
			reply.Time, reply.TCPFlags, reply.Seq, reply.Ack = syn.Time+2000, packet.SYN|packet.ACK|packet.FIN, 99, syn.Seq+1
			errs = append(errs, d.Send(syn, reply))
		}
	}
	return errors.Join(errs...)
}
