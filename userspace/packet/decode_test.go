package packet_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	. "github.com/xdpmon/xdpmon/userspace/packet"
)

var (
	a4 = netip.MustParseAddr("192.0.2.1")
	b4 = netip.MustParseAddr("198.51.100.2")
	c4 = netip.MustParseAddr("203.0.113.3")
	d4 = netip.MustParseAddr("203.0.113.4")
	a6 = netip.MustParseAddr("2001:db8::1")
	b6 = netip.MustParseAddr("2001:db8::2:0:0:2")
)

var (
	ip4 = builder.IP{Src: a4, Dst: b4, ID: 77}
	ip6 = builder.IP{Src: a6, Dst: b6}
	syn = &builder.TCP{SrcPort: 40000, DstPort: 443, Seq: 0xfffffff0, Ack: 7, Flags: SYN | 0xc0, Window: 1000}
	dgr = &builder.UDP{SrcPort: 5000, DstPort: 6000}
)

// tcp4 is what the segment syn in ip4 decodes to, apart from lengths.
func tcp4(change func(*Packet)) Packet {
	p := Packet{
		Valid: IP | Ports | TCP | IPID, Src: a4, Dst: b4, Proto: 6, SrcPort: 40000, DstPort: 443,
		Seq: 0xfffffff0, Ack: 7, TCPFlags: SYN | 0xc0, Window: 1000, IPID: 77, Segs: 1, Len: 54,
	}
	change(&p)
	return p
}

func tcp6(change func(*Packet)) Packet {
	return tcp4(func(p *Packet) {
		p.Src, p.Dst, p.Valid, p.IPID, p.Len = a6, b6, IP|Ports|TCP, 0, 74
		change(p)
	})
}

func udp4(change func(*Packet)) Packet {
	p := Packet{
		Valid: IP | Ports | UDP | IPID, Src: a4, Dst: b4, Proto: 17, SrcPort: 5000, DstPort: 6000, IPID: 77,
		Segs: 1, Len: 42,
	}
	change(&p)
	return p
}

func same(*Packet) {}

type decodeCase struct {
	name   string
	spec   builder.Spec
	snap   int // captured bytes, 0: all
	opts   DecodeOptions
	want   Packet
	reason Reason
}

var linkCases = []decodeCase{
	{name: "tcp4", spec: builder.Spec{IP: ip4, TCP: syn}, want: tcp4(same)},
	{name: "tcp6", spec: builder.Spec{IP: ip6, TCP: syn}, want: tcp6(same)},
	{name: "raw4", spec: builder.Spec{Link: LinkRaw, IP: ip4, TCP: syn}, want: tcp4(func(p *Packet) { p.Len = 40 })},
	{name: "raw6", spec: builder.Spec{Link: LinkRaw, IP: ip6, TCP: syn}, want: tcp6(func(p *Packet) { p.Len = 60 })},
	{name: "egress", spec: builder.Spec{Direction: Egress, Interface: 3, IP: ip4, TCP: syn},
		want: tcp4(func(p *Packet) { p.Valid |= IsEgress; p.Interface = 3 })},
	{name: "vlan", spec: builder.Spec{VLANs: []builder.VLAN{{ID: 5, Priority: 7}}, IP: ip4, TCP: syn},
		want: tcp4(func(p *Packet) { p.Valid |= VLAN; p.VLAN = 5; p.Len = 58 })},
	{name: "three tags", spec: builder.Spec{
		VLANs: []builder.VLAN{{ID: 11, TPID: builder.EtherQinQ}, {ID: 12, TPID: 0x9100}, {ID: 13}}, IP: ip6, TCP: syn},
		want: tcp6(func(p *Packet) { p.Valid |= VLAN; p.VLAN = 11; p.Len = 86 })},
	{name: "four tags", spec: builder.Spec{
		VLANs: []builder.VLAN{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}}, IP: ip4, TCP: syn},
		want: Packet{Valid: VLAN, VLAN: 1, Segs: 1, Len: 70}, reason: NotIP},
	{name: "pppoe4", spec: builder.Spec{PPPoE: true, IP: ip4, TCP: syn}, want: tcp4(func(p *Packet) { p.Len = 62 })},
	{name: "pppoe6 in vlan", spec: builder.Spec{VLANs: []builder.VLAN{{ID: 9}}, PPPoE: true, IP: ip6, TCP: syn},
		want: tcp6(func(p *Packet) { p.Valid |= VLAN; p.VLAN = 9; p.Len = 86 })},
	{name: "mpls", spec: builder.Spec{MPLS: []uint32{100, 200, 300}, IP: ip6, TCP: syn},
		want: tcp6(func(p *Packet) { p.Len = 86 })},
	{name: "nine labels", spec: builder.Spec{MPLS: []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9}, IP: ip4, TCP: syn},
		want: Packet{Segs: 1, Len: 90}, reason: NotIP},
	{name: "arp", spec: builder.Spec{EtherType: builder.EtherARP, Payload: make([]byte, 28)},
		want: Packet{Segs: 1, Len: 42}, reason: NotIP},
	{name: "cut in ethernet", spec: builder.Spec{IP: ip4, TCP: syn}, snap: 13,
		want: Packet{Segs: 1, Len: 54}, reason: Truncated},
	{name: "cut in tag", spec: builder.Spec{VLANs: []builder.VLAN{{ID: 5}}, IP: ip4, TCP: syn}, snap: 17,
		want: Packet{Segs: 1, Len: 58}, reason: Truncated},
}

var networkCases = []decodeCase{
	{name: "options", spec: builder.Spec{IP: builder.IP{Src: a4, Dst: b4, ID: 77, Options: []byte{7, 5, 4, 0, 0}}, TCP: syn},
		want: tcp4(func(p *Packet) { p.Len = 62 })},
	{name: "broken options", spec: builder.Spec{IP: builder.IP{Src: a4, Dst: b4, ID: 77, Options: []byte{7, 0, 0, 99}}, TCP: syn},
		want: tcp4(func(p *Packet) { p.Len = 58 })},
	{name: "first fragment", spec: builder.Spec{IP: builder.IP{Src: a4, Dst: b4, MoreFragments: true}, UDP: dgr, PayloadLen: 64},
		want: udp4(func(p *Packet) { p.Valid = IP | Ports | UDP | Fragment; p.IPID = 0; p.Payload = 64; p.Len = 106 })},
	{name: "later fragment", spec: builder.Spec{IP: builder.IP{Src: a4, Dst: b4, Offset: 1480}, Proto: 17, Payload: make([]byte, 20)},
		want: Packet{Valid: IP | Fragment, Src: a4, Dst: b4, Proto: 17, Segs: 1, Len: 54}, reason: LaterFragment},
	{name: "first fragment 6", spec: builder.Spec{IP: builder.IP{Src: a6, Dst: b6, MoreFragments: true}, UDP: dgr, PayloadLen: 64},
		want: udp4(func(p *Packet) {
			p.Src, p.Dst, p.IPID = a6, b6, 0
			p.Valid, p.Payload, p.Len = IP|Ports|UDP|Fragment, 64, 134
		})},
	{name: "later fragment 6", spec: builder.Spec{IP: builder.IP{Src: a6, Dst: b6, Offset: 8}, Proto: 17, Payload: make([]byte, 9)},
		want: Packet{Valid: IP | Fragment, Src: a6, Dst: b6, Proto: 17, Segs: 1, Len: 71}, reason: LaterFragment},
	{name: "atomic fragment", spec: builder.Spec{
		IP: builder.IP{Src: a6, Dst: b6, Extensions: []builder.Extension{{Proto: builder.ProtoFragment, Body: make([]byte, 6)}}}, TCP: syn},
		want: tcp6(func(p *Packet) { p.Len = 82 })},
	{name: "extensions", spec: builder.Spec{
		IP: builder.IP{Src: a6, Dst: b6, Extensions: chain(builder.ProtoHopByHop, builder.ProtoRouting, builder.ProtoAH, builder.ProtoDestination)}, TCP: syn},
		want: tcp6(func(p *Packet) { p.Len = 14 + 40 + 16 + 16 + 12 + 16 + 20 })},
	{name: "eight extensions", spec: builder.Spec{IP: builder.IP{Src: a6, Dst: b6, Extensions: chain(60, 60, 60, 60, 60, 60, 60, 60)}, TCP: syn},
		want: tcp6(func(p *Packet) { p.Len = 74 + 8*16 })},
	{name: "nine extensions", spec: builder.Spec{IP: builder.IP{Src: a6, Dst: b6, Extensions: chain(60, 60, 60, 60, 60, 60, 60, 60, 60)}, TCP: syn},
		want: Packet{Valid: IP, Src: a6, Dst: b6, Proto: 60, Segs: 1, Len: 74 + 9*16}, reason: ExtensionChain},
	{name: "ah4", spec: builder.Spec{IP: builder.IP{Src: a4, Dst: b4, ID: 77, Extensions: chain(builder.ProtoAH)}, TCP: syn},
		want: tcp4(func(p *Packet) { p.Len = 66 })},
	{name: "no next header", spec: builder.Spec{IP: ip6, Proto: builder.ProtoNoNext},
		want: Packet{Valid: IP, Src: a6, Dst: b6, Proto: 59, Segs: 1, Len: 54}, reason: NoTransport},
	{name: "zero length", spec: builder.Spec{IP: builder.IP{Src: a4, Dst: b4, ID: 77, ZeroLength: true}, TCP: syn, PayloadLen: 5000},
		want: tcp4(func(p *Packet) { p.Len, p.Payload = 5054, 5000 })},
	{name: "big tcp 4", spec: builder.Spec{IP: ip4, TCP: syn, PayloadLen: 100000},
		want: tcp4(func(p *Packet) { p.Len, p.Payload = 100054, 100000 })},
	{name: "jumbogram", spec: builder.Spec{IP: ip6, TCP: syn, PayloadLen: 100000},
		want: tcp6(func(p *Packet) { p.Len, p.Payload = 100082, 100000 })},
	{name: "zero length 6", spec: builder.Spec{IP: builder.IP{Src: a6, Dst: b6, ZeroLength: true}, TCP: syn, PayloadLen: 3000},
		want: tcp6(func(p *Packet) { p.Len, p.Payload = 3074, 3000 })},
	{name: "cut in ip", spec: builder.Spec{IP: ip4, TCP: syn}, snap: 33,
		want: Packet{Segs: 1, Len: 54}, reason: Truncated},
}

func chain(protos ...uint8) []builder.Extension {
	var exts []builder.Extension
	for _, proto := range protos {
		exts = append(exts, builder.Extension{Proto: proto, Body: make([]byte, 8)})
	}
	return exts
}

func withOptions(opts ...byte) *builder.TCP {
	t := *syn
	t.Options = opts
	return &t
}

var transportCases = []decodeCase{
	{name: "payload", spec: builder.Spec{IP: ip4, TCP: syn, PayloadLen: 1400},
		want: tcp4(func(p *Packet) { p.Len, p.Payload = 1454, 1400 })},
	{name: "timestamps", spec: builder.Spec{IP: ip4, TCP: withOptions(builder.Timestamps(10, 20)...)},
		want: tcp4(func(p *Packet) { p.Len = 66; p.Valid |= TSOpt; p.TSVal, p.TSEcr = 10, 20 })},
	{name: "timestamps after others", spec: builder.Spec{IP: ip4, TCP: withOptions(2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7)},
		want: tcp4(func(p *Packet) { p.Len = 74; p.Valid |= TSOpt; p.TSVal, p.TSEcr, p.Scale = 1, 2, 8 })},
	{name: "option of length 0", spec: builder.Spec{IP: ip4, TCP: withOptions(3, 0, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)},
		want: tcp4(func(p *Packet) { p.Len = 66 })},
	{name: "timestamps cut", spec: builder.Spec{IP: ip4, TCP: withOptions(builder.Timestamps(10, 20)...)}, snap: 65,
		want: tcp4(func(p *Packet) { p.Len = 66 })},
	{name: "options cut after timestamps", spec: builder.Spec{IP: ip4, TCP: withOptions(append(builder.Timestamps(1, 2), 5, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1)...)}, snap: 67,
		want: tcp4(func(p *Packet) { p.Len = 78; p.Valid |= TSOpt; p.TSVal, p.TSEcr = 1, 2 })},
	{name: "cut in tcp", spec: builder.Spec{IP: ip4, TCP: syn}, snap: 53,
		want: Packet{Valid: IP | IPID, Src: a4, Dst: b4, Proto: 6, IPID: 77, Segs: 1, Len: 54}, reason: Truncated},
	{name: "udp", spec: builder.Spec{IP: ip4, UDP: dgr, PayloadLen: 100},
		want: udp4(func(p *Packet) { p.Len, p.Payload = 142, 100 })},
	{name: "dns request", spec: builder.Spec{IP: ip4, UDP: &builder.UDP{SrcPort: 5000, DstPort: 53}, Payload: builder.DNS(0xabcd, false)},
		want: udp4(func(p *Packet) {
			p.DstPort, p.Valid = 53, p.Valid|AppRequest|HasQName
			p.AppID, p.Len, p.Payload, p.QName = 0xabcd, 71, 29, "\x07example\x03org\x00"
		})},
	{name: "dns response", spec: builder.Spec{IP: ip4, UDP: &builder.UDP{SrcPort: 53, DstPort: 6000}, Payload: builder.DNS(0xabcd, true)},
		want: udp4(func(p *Packet) {
			p.SrcPort, p.Valid = 53, p.Valid|AppResponse|HasQName
			p.AppID, p.Len, p.Payload, p.QName = 0xabcd, 71, 29, "\x07example\x03org\x00"
		})},
	{name: "ntp request", spec: builder.Spec{IP: ip4, UDP: &builder.UDP{SrcPort: 123, DstPort: 123}, Payload: builder.NTP(99, false)},
		want: udp4(func(p *Packet) {
			p.SrcPort, p.DstPort, p.Valid = 123, 123, p.Valid|AppRequest
			p.AppID, p.Len, p.Payload = 99, 90, 48
		})},
	{name: "ntp response", spec: builder.Spec{IP: ip4, UDP: &builder.UDP{SrcPort: 123, DstPort: 6000}, Payload: builder.NTP(99, true)},
		want: udp4(func(p *Packet) { p.SrcPort, p.Valid = 123, p.Valid|AppResponse; p.AppID, p.Len, p.Payload = 99, 90, 48 })},
	{name: "echo 4", spec: builder.Spec{IP: ip4, Echo: &builder.Echo{ID: 4, Seq: 5}, PayloadLen: 56},
		want: Packet{Valid: IP | ICMP | IPID, Src: a4, Dst: b4, Proto: 1, ICMPType: 8, SrcPort: 4, DstPort: 4, Seq: 5, IPID: 77, Segs: 1, Len: 98, Payload: 56}},
	{name: "echo reply 6", spec: builder.Spec{IP: ip6, Echo: &builder.Echo{ID: 4, Seq: 5, Reply: true}, PayloadLen: 56},
		want: Packet{Valid: IP | ICMP, Src: a6, Dst: b6, Proto: 58, ICMPType: 129, SrcPort: 4, DstPort: 4, Seq: 5, Segs: 1, Len: 118, Payload: 56}},
	{name: "unreachable", spec: builder.Spec{IP: ip4, Proto: 1, Payload: []byte{3, 1, 0, 0, 0, 0, 0, 0}},
		want: Packet{Valid: IP | IPID, Src: a4, Dst: b4, Proto: 1, IPID: 77, Segs: 1, Len: 42}, reason: NoTransport},
	{name: "icmp of the other family", spec: builder.Spec{IP: ip6, Proto: 1, Payload: []byte{8, 0, 0, 0, 0, 0, 0, 0}},
		want: Packet{Valid: IP, Src: a6, Dst: b6, Proto: 1, Segs: 1, Len: 62}, reason: NoTransport},
	{name: "esp", spec: builder.Spec{IP: ip4, Proto: builder.ProtoESP, Payload: make([]byte, 40)},
		want: Packet{Valid: IP | IPID, Src: a4, Dst: b4, Proto: 50, IPID: 77, Segs: 1, Len: 74}, reason: NoTransport},
	{name: "udp too short", spec: builder.Spec{IP: builder.IP{Src: a4, Dst: b4, ID: 77}, Proto: 17, Payload: make([]byte, 7)},
		want: Packet{Valid: IP | IPID, Src: a4, Dst: b4, Proto: 17, IPID: 77, Segs: 1, Len: 41}, reason: Truncated},
}

func tunnel(kind builder.Tunnel, change func(*builder.Outer)) *builder.Outer {
	o := &builder.Outer{Kind: kind, Src: c4, Dst: d4, SrcPort: 1111, VNI: 42}
	change(o)
	return o
}

func inTunnel(n uint32) Packet {
	return tcp4(func(p *Packet) { p.Valid |= Tunnel; p.Len = n })
}

func noChange(*builder.Outer) {}

var decap = DecodeOptions{Decap: true}

var tunnelCases = []decodeCase{
	{name: "ipip", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.IPIP, noChange)}, opts: decap, want: inTunnel(74)},
	{name: "6in4", spec: builder.Spec{IP: ip6, TCP: syn, Outer: tunnel(builder.IPIP, noChange)}, opts: decap,
		want: tcp6(func(p *Packet) { p.Valid |= Tunnel; p.Len = 94 })},
	{name: "4in6", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.IPIP, func(o *builder.Outer) { o.Src, o.Dst = a6, b6 })},
		opts: decap, want: inTunnel(94)},
	{name: "gre", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.GRE, func(o *builder.Outer) { o.GREKey, o.GRESeq, o.GRESum = true, true, true })},
		opts: decap, want: inTunnel(90)},
	{name: "bridged gre", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.GRE, func(o *builder.Outer) { o.Bridged = true })},
		opts: decap, want: inTunnel(92)},
	{name: "vxlan", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.VXLAN, noChange)}, opts: decap, want: inTunnel(104)},
	{name: "vxlan with inner vlan", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.VXLAN, func(o *builder.Outer) { o.InnerVLANs = []builder.VLAN{{ID: 6}} })},
		opts: decap, want: tcp4(func(p *Packet) { p.Valid |= Tunnel | VLAN; p.VLAN = 6; p.Len = 108 })},
	{name: "vxlan with outer vlan", spec: builder.Spec{VLANs: []builder.VLAN{{ID: 5}}, IP: ip4, TCP: syn,
		Outer: tunnel(builder.VXLAN, func(o *builder.Outer) { o.InnerVLANs = []builder.VLAN{{ID: 6}} })},
		opts: decap, want: tcp4(func(p *Packet) { p.Valid |= Tunnel | VLAN; p.VLAN = 5; p.Len = 112 })},
	{name: "geneve", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.GENEVE, func(o *builder.Outer) { o.Options = make([]byte, 12) })},
		opts: decap, want: inTunnel(102)},
	{name: "bridged geneve", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.GENEVE, func(o *builder.Outer) { o.Bridged = true })},
		opts: decap, want: inTunnel(104)},
	{name: "without decap", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.VXLAN, noChange)},
		want: Packet{Valid: IP | Ports | UDP | IPID, Src: c4, Dst: d4, Proto: 17, SrcPort: 1111, DstPort: 4789, Segs: 1, Len: 104, Payload: 62}},
	{name: "decap of nothing", spec: builder.Spec{IP: ip4, TCP: syn}, opts: decap, want: tcp4(same)},
	{name: "inner cut", spec: builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.IPIP, noChange)}, opts: decap, snap: 60,
		want: Packet{Valid: IP | IPID | Tunnel, Src: a4, Dst: b4, Proto: 6, IPID: 77, Segs: 1, Len: 74}, reason: Truncated},
}

func TestDecode(t *testing.T) {
	for _, group := range [][]decodeCase{linkCases, networkCases, transportCases, tunnelCases} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { checkDecode(t, c) })
		}
	}
}

func checkDecode(t *testing.T, c decodeCase) {
	t.Helper()
	f := builder.MustBuild(&c.spec)
	if c.snap != 0 {
		f.Data = f.Data[:c.snap]
	}
	before := bytes.Clone(f.Data)
	got := Packet{Valid: 0xffff, Payload: 1, AppID: 1, VLAN: 1} // Decode overwrites all of it
	if reason := Decode(&f, c.opts, &got); reason != c.reason {
		t.Errorf("reason %v, want %v", reason, c.reason)
	}
	if got.Has(UDP) {
		got.Begin = 0 // TestBegin
	}
	if got != c.want {
		t.Errorf("decoded\n%+v, want\n%+v", got, c.want)
	}
	if !bytes.Equal(before, f.Data) {
		t.Error("Decode changed the frame")
	}
}

// mutated cases: what no builder makes.
func TestDecodeImpossible(t *testing.T) {
	const l3, l4 = 14, 34
	for _, c := range []struct {
		name   string
		change func(b []byte)
		reason Reason
	}{
		{"version 5", func(b []byte) { b[l3] = 0x55 }, BadIP},
		{"header of 4 words", func(b []byte) { b[l3] = 0x44 }, BadIP},
		{"total length below header", func(b []byte) { b[l3+2], b[l3+3] = 0, 19 }, BadIP},
		{"tcp header of 4 words", func(b []byte) { b[l4+12] = 0x40 }, BadTransport},
		{"tcp header beyond the packet", func(b []byte) { b[l4+12] = 0x60 }, BadTransport},
		{"tcp beyond total length", func(b []byte) { b[l3+3] = 39 }, BadTransport},
		{"udp beyond total length", func(b []byte) { b[l3+9] = 17; b[l3+3] = 27 }, BadTransport},
		{"icmp beyond total length", func(b []byte) { b[l3+9] = 1; b[l3+3] = 27 }, BadTransport},
		{"icmp that is no echo", func(b []byte) { b[l3+9] = 1; b[l4] = 11 }, NoTransport},
		{"ipv6 in the ethertype only", func(b []byte) { b[12], b[13] = 0x86, 0xdd }, BadIP},
		{"length of an 802.3 frame", func(b []byte) { b[12], b[13] = 0, 40 }, NotIP},
	} {
		f := builder.MustBuild(&builder.Spec{IP: ip4, TCP: syn})
		c.change(f.Data)
		if c.reason == BadIP && f.Data[12] == 0x86 {
			f.Data = append(f.Data, make([]byte, 40)...)
			f.Len = len(f.Data)
		}
		var p Packet
		if reason := Decode(&f, DecodeOptions{}, &p); reason != c.reason {
			t.Errorf("%s: %v, want %v", c.name, reason, c.reason)
		}
	}
}

// PPP may write its protocol as one byte (RFC 1661, section 6.5), and some do so over Ethernet.
func TestCompressedPPPProtocol(t *testing.T) {
	f := builder.MustBuild(&builder.Spec{PPPoE: true, IP: ip4, TCP: syn})
	const protocol = 20 // offset of its two bytes
	f.Data = append(f.Data[:protocol:protocol], f.Data[protocol+1:]...)
	f.Len--
	var p Packet
	if reason := Decode(&f, DecodeOptions{}, &p); reason != Parsed || p != tcp4(func(p *Packet) { p.Len = 61 }) {
		t.Errorf("%v: %+v", reason, p)
	}
}

// A jumbo payload length below 65,536 bytes or above 2 GiB is none (RFC 2675, section 3).
func TestImpossibleJumbograms(t *testing.T) {
	const option = 14 + 40 + 4
	for size, want := range map[uint32]Reason{100000: Parsed, 65536: Parsed, 65535: BadIP, 20: BadIP, 1 << 31: BadIP, 0xffffffff: BadIP} {
		f := builder.MustBuild(&builder.Spec{IP: ip6, TCP: syn, PayloadLen: 100000})
		binary.BigEndian.PutUint32(f.Data[option:], size)
		var p Packet
		if reason := Decode(&f, DecodeOptions{}, &p); reason != want {
			t.Errorf("jumbo payload of %d bytes: %v, want %v", size, reason, want)
		}
	}
}

// A tunnel that carries something else than IP leaves nothing of the outer packet in the inner one.
func TestTunnelOfSomethingElse(t *testing.T) {
	f := builder.MustBuild(&builder.Spec{IP: ip4, TCP: syn, Outer: tunnel(builder.VXLAN, noChange)})
	const innerType = 14 + 20 + 8 + 8 + 12
	binary.BigEndian.PutUint16(f.Data[innerType:], builder.EtherARP)
	var p Packet
	want := Packet{Valid: Tunnel, Segs: 1, Len: 104}
	if reason := Decode(&f, decap, &p); reason != NotIP || p != want {
		t.Errorf("%v: %+v, want %+v", reason, p, want)
	}
}

func TestReasonNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range Reasons {
		if seen[r.String()] || r.String() == "" || r.String() == "unknown" {
			t.Errorf("reason %d has the name %q", r, r)
		}
		seen[r.String()] = true
	}
	if Reasons.String() != "unknown" {
		t.Error("a reason that is none must not have the name of one")
	}
}

// FuzzDecode checks for panics and reads after the captured data; go test runs the seeds.
func FuzzDecode(f *testing.F) {
	for _, group := range [][]decodeCase{linkCases, networkCases, transportCases, tunnelCases} {
		for _, c := range group {
			frame := builder.MustBuild(&c.spec)
			f.Add(frame.Data, uint32(frame.Len), frame.Link == LinkRaw)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, wire uint32, raw bool) {
		frame := Frame{Time: 1, Data: bytes.Clone(data), Len: max(int(wire), len(data))}
		if raw {
			frame.Link = LinkRaw
		}
		for _, opts := range []DecodeOptions{{}, decap} {
			var p Packet
			reason := Decode(&frame, opts, &p)
			if (reason == Parsed) && !p.Has(IP) {
				t.Errorf("parsed without addresses: %+v", p)
			}
			if p.Valid&(TCP|UDP|ICMP) != 0 && reason != Parsed && !p.Has(Tunnel) {
				t.Errorf("transport in a packet that is %v: %+v", reason, p)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []decodeCase{linkCases[0], linkCases[1], transportCases[1], networkCases[7], tunnelCases[5]} {
		b.Run(c.name, func(b *testing.B) {
			f := builder.MustBuild(&c.spec)
			var d Decoder
			var p Packet
			b.ReportAllocs()
			for b.Loop() {
				d.Decode(&f, c.opts, &p)
			}
		})
	}
}
