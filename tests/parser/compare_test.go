package parser

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// check compares the program's vector of a frame with packet.Decode; it returns a description of the
// differences, or "".
func (p *probe) check(w way, f *packet.Frame, decap bool) string {
	got, err := p.see(w, f)
	if err != nil {
		return err.Error()
	}
	asSeen := onTheWay(w, f)
	var want packet.Packet
	reason := packet.Decode(&asSeen, packet.DecodeOptions{Decap: decap}, &want)
	return differences(&got, &want, reason)
}

// onTheWay is what a hook can know of a frame: only a capture may contain more bytes than were sent.
func onTheWay(w way, f *packet.Frame) packet.Frame {
	seen := *f
	if w == replayed {
		return seen
	}
	seen.Len, seen.Direction, seen.Interface = len(f.Data), packet.Ingress, 0
	if w == egress {
		seen.Direction = packet.Egress
	}
	return seen
}

// passable reports whether a test run accepts the frame on that path at all.
func passable(w way, f *packet.Frame) bool {
	raw := w == tunXDP || w == tunTC
	if w == replayed {
		return true
	}
	if raw != (f.Link == packet.LinkRaw) || len(f.Data) < 14 {
		return false // the kernel requires an Ethernet header's length
	}
	if w == live || w == tunXDP {
		return len(f.Data) <= 60000 // capacity of a test run's pages
	}
	if len(f.Data) > 3500 {
		return false // an skb of a test run is linear and in one page
	}
	switch binary.BigEndian.Uint16(f.Data[12:]) { // ... and for an skb the IP header's that the type announces
	case builder.EtherIPv4:
		return len(f.Data) >= 34
	case builder.EtherIPv6:
		return len(f.Data) >= 54
	}
	return true
}

// verify reports the differences of a frame on all of the probe's ways.
func (p *probe) verify(tb testing.TB, name string, f *packet.Frame, decap bool) {
	tb.Helper()
	for w := range ways {
		if _, loaded := p.programs[w]; (w != replayed && !loaded) || !passable(w, f) {
			continue
		}
		if diff := p.check(w, f, decap); diff != "" {
			tb.Errorf("%s (%s, decap %t):\n%s%s", name, w, decap, diff, dump(f))
		}
	}
}

func dump(f *packet.Frame) string {
	return fmt.Sprintf("  link %d, %d bytes of %d: %x", f.Link, len(f.Data), f.Len, f.Data[:min(len(f.Data), 256)])
}

// differ collects the fields that are not equal.
type differ struct{ strings.Builder }

func (d *differ) field(name string, got, want any) {
	if got != want {
		fmt.Fprintf(d, "  %s: program %v, decoder %v\n", name, got, want)
	}
}

func differences(got *sight, want *packet.Packet, reason packet.Reason) string {
	var d differ
	if !want.Has(packet.IP) { // no algorithm processes such a packet, so its direction is not used
		got.Valid &^= uint16(packet.IsEgress)
		want.Valid &^= packet.IsEgress
	}
	d.field("reason", got.reason, reason)
	d.field("valid", validNames(packet.Valid(got.Valid)), validNames(want.Valid))
	d.field("len", got.Len, want.Len)
	d.field("segments", got.Segs, want.Segs)
	d.field("tcp flags", got.TcpFlags, want.TCPFlags)
	d.field("payload", got.Payload, want.Payload)
	if want.Has(packet.VLAN) {
		d.field("vlan", got.Vlan, want.VLAN)
	}
	if want.Has(packet.TCP) {
		d.field("window", got.Window, want.Window)
	}
	if want.Has(packet.IP) {
		d.network(got, want)
		d.transport(got, want)
	}
	return d.String()
}

// address of four words as in the packet.
func address(words [4]uint32) netip.Addr {
	var b [16]byte
	for i, w := range words {
		binary.NativeEndian.PutUint32(b[4*i:], w)
	}
	return netip.AddrFrom16(b)
}

func (d *differ) network(got *sight, want *packet.Packet) {
	family := uint8(6)
	if want.Src.Is4() {
		family = 4
	}
	d.field("family", got.Family, family)
	d.field("protocol", got.Proto, want.Proto)
	d.field("class", got.Tos, want.TOS)
	d.field("source", address(got.Src), netip.AddrFrom16(want.Src.As16()))
	d.field("destination", address(got.Dst), netip.AddrFrom16(want.Dst.As16()))
	d.field("source port", got.Sport, want.SrcPort)
	d.field("destination port", got.Dport, want.DstPort)
	if want.Has(packet.IPID) {
		d.field("ip id", got.Ipid, want.IPID)
	}
}

func (d *differ) transport(got *sight, want *packet.Packet) {
	if want.Has(packet.TCP) {
		d.field("acknowledgement", got.Ack, want.Ack)
		d.field("window scale", got.Begin, uint64(want.Scale))
	}
	if want.Has(packet.TCP) || want.Has(packet.ICMP) || want.Has(packet.RTP) {
		d.field("sequence number", got.Seq, want.Seq)
	}
	if want.Has(packet.UDP) {
		d.field("begin", got.Begin, want.Begin)
	}
	if want.Has(packet.ICMP) {
		d.field("icmp type", got.IcmpType, want.ICMPType)
	}
	if want.Has(packet.TSOpt) {
		d.field("timestamp value", got.Tsval, want.TSVal)
		d.field("timestamp echo", got.Tsecr, want.TSEcr)
	}
	if want.Valid&(packet.AppRequest|packet.AppResponse) != 0 {
		d.field("application id", got.AppId, want.AppID)
	}
	if want.Has(packet.HasQName) {
		d.field("name", got.Qname, packet.HashName(probeSeed, want.QName))
	}
}

var validBits = []string{
	"ip", "ports", "tcp", "udp", "icmp", "tsopt", "fragment", "aggregate", "vlan", "tunnel", "app request",
	"app response", "ip id", "egress", "name", "rtp",
}

func validNames(v packet.Valid) string {
	var names []string
	for i, name := range validBits {
		if v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
