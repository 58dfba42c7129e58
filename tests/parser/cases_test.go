package parser

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

var (
	a4 = netip.MustParseAddr("192.0.2.1")
	b4 = netip.MustParseAddr("198.51.100.2")
	c4 = netip.MustParseAddr("203.0.113.3")
	d4 = netip.MustParseAddr("203.0.113.4")
	a6 = netip.MustParseAddr("2001:db8::1")
	b6 = netip.MustParseAddr("2001:db8::2:0:0:2")
	m6 = netip.MustParseAddr("::ffff:192.0.2.9") // a mapped address on the wire is IPv6
)

// part changes one layer of a Spec.
type part struct {
	name  string
	apply func(s *builder.Spec)
}

var linkParts = []part{
	{"ethernet", func(*builder.Spec) {}},
	{"raw", func(s *builder.Spec) { s.Link = packet.LinkRaw }},
	{"vlan", func(s *builder.Spec) { s.VLANs = tags(5) }},
	{"priority tag", func(s *builder.Spec) { s.VLANs = []builder.VLAN{{ID: 0, Priority: 7}} }},
	{"qinq", func(s *builder.Spec) { s.VLANs = []builder.VLAN{{ID: 4095, TPID: builder.EtherQinQ}, {ID: 6}} }},
	{"three tags", func(s *builder.Spec) {
		s.VLANs = []builder.VLAN{{ID: 1, TPID: builder.EtherQinQ}, {ID: 2, TPID: 0x9100}, {ID: 3}}
	}},
	{"four tags", func(s *builder.Spec) { s.VLANs = tags(1, 2, 3, 4) }},
	{"pppoe", func(s *builder.Spec) { s.PPPoE = true }},
	{"pppoe in vlans", func(s *builder.Spec) { s.PPPoE, s.VLANs = true, tags(7, 8) }},
	{"mpls", func(s *builder.Spec) { s.MPLS = []uint32{16} }},
	{"mpls in vlan", func(s *builder.Spec) { s.MPLS, s.VLANs = []uint32{1, 2, 3}, tags(9) }},
	{"eight labels", func(s *builder.Spec) { s.MPLS = make([]uint32, 8) }},
	{"nine labels", func(s *builder.Spec) { s.MPLS = make([]uint32, 9) }},
}

func tags(ids ...uint16) []builder.VLAN {
	var list []builder.VLAN
	for _, id := range ids {
		list = append(list, builder.VLAN{ID: id})
	}
	return list
}

func ip4(change func(*builder.IP)) func(*builder.Spec) { return addressed(a4, b4, change) }

func ip6(change func(*builder.IP)) func(*builder.Spec) { return addressed(a6, b6, change) }

func addressed(src, dst netip.Addr, change func(*builder.IP)) func(*builder.Spec) {
	return func(s *builder.Spec) {
		s.IP = builder.IP{Src: src, Dst: dst, ID: 0x1234}
		change(&s.IP)
	}
}

func extended(protos ...uint8) func(*builder.IP) {
	return func(ip *builder.IP) {
		for i, proto := range protos {
			ip.Extensions = append(ip.Extensions, builder.Extension{Proto: proto, Body: make([]byte, 6+8*(i%3))})
		}
	}
}

var networkParts = []part{
	{"v4", ip4(func(*builder.IP) {})},
	{"v4 options", ip4(func(ip *builder.IP) { ip.Options = []byte{7, 7, 4, 0, 0, 0, 0} })},
	{"v4 40 bytes of options", ip4(func(ip *builder.IP) { ip.Options = make([]byte, 40) })},
	{"v4 do not fragment", ip4(func(ip *builder.IP) { ip.DontFragment = true })},
	{"v4 first fragment", ip4(func(ip *builder.IP) { ip.MoreFragments = true })},
	{"v4 middle fragment", ip4(func(ip *builder.IP) { ip.MoreFragments, ip.Offset = true, 8 })},
	{"v4 last fragment", ip4(func(ip *builder.IP) { ip.Offset = 65528 })},
	{"v4 zero length", ip4(func(ip *builder.IP) { ip.ZeroLength = true })},
	{"v4 ah", ip4(extended(builder.ProtoAH))},
	{"v6", ip6(func(*builder.IP) {})},
	{"v6 mapped", addressed(m6, b6, func(*builder.IP) {})},
	{"v6 zero length", ip6(func(ip *builder.IP) { ip.ZeroLength = true })},
	{"v6 first fragment", ip6(func(ip *builder.IP) { ip.MoreFragments = true })},
	{"v6 last fragment", ip6(func(ip *builder.IP) { ip.Offset = 16 })},
	{"v6 fragment after options", ip6(func(ip *builder.IP) { extended(0, 60)(ip); ip.Offset = 16 })},
	{"v6 atomic fragment", ip6(extended(builder.ProtoFragment))},
	{"v6 hop by hop", ip6(extended(0))},
	{"v6 ah", ip6(extended(builder.ProtoAH))},
	{"v6 routing, ah, options", ip6(extended(43, 51, 60))},
	{"v6 mobility, hip, shim6", ip6(extended(135, 139, 140))},
	{"v6 eight extensions", ip6(extended(0, 60, 43, 60, 51, 60, 60, 60))},
	{"v6 nine extensions", ip6(extended(0, 60, 43, 60, 51, 60, 60, 60, 60))},
}

func segment(flags uint8, payload int, options ...byte) func(*builder.Spec) {
	return func(s *builder.Spec) {
		s.TCP = &builder.TCP{SrcPort: 40000, DstPort: 443, Seq: 0xfffffff0, Ack: 0x80000001, Flags: flags, Options: options}
		s.PayloadLen = payload
	}
}

func datagram(src, dst uint16, payload []byte) func(*builder.Spec) {
	return func(s *builder.Spec) { s.UDP, s.Payload = &builder.UDP{SrcPort: src, DstPort: dst}, payload }
}

func echo(reply bool) func(*builder.Spec) {
	return func(s *builder.Spec) { s.Echo, s.PayloadLen = &builder.Echo{Reply: reply, ID: 77, Seq: 65535}, 56 }
}

func other(proto uint8, payload ...byte) func(*builder.Spec) {
	return func(s *builder.Spec) { s.Proto, s.Payload = proto, payload }
}

var transportParts = []part{
	{"syn", segment(packet.SYN, 0, append([]byte{2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0}, 1, 3, 3, 7)...)},
	{"syn ack with ecn", segment(packet.SYN|packet.ACK|0xc0, 0, 2, 4, 5, 180)},
	{"fin", segment(packet.FIN|packet.ACK, 0)},
	{"data", segment(packet.ACK|packet.PSH, 1400, builder.Timestamps(100, 200)...)},
	{"big tcp", segment(packet.ACK, 100000, builder.Timestamps(100, 200)...)},
	{"all flags", segment(0xff, 1)},
	{"only timestamps", segment(packet.ACK, 0, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)},
	{"timestamps at the end", segment(packet.ACK, 0, append(nops(30), 8, 10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe)...)},
	{"timestamps after 19 nops", segment(packet.ACK, 0, append(nops(19), 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)...)},
	{"timestamps after 20 nops", segment(packet.ACK, 0, append(nops(20), 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)...)},
	{"timestamps after the end", segment(packet.ACK, 0, 0, 0, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)},
	{"timestamps of another length", segment(packet.ACK, 0, 8, 9, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1)},
	{"timestamps overrun", segment(packet.ACK, 0, append(nops(33), 8, 10, 0, 0, 0, 1, 0)...)},
	{"option of length 0", segment(packet.ACK, 0, 30, 0, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)},
	{"option of length 1", segment(packet.ACK, 0, 30, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)},
	{"option beyond the header", segment(packet.ACK, 20, 30, 200, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)},
	{"sack", segment(packet.ACK, 0, append(builder.Timestamps(9, 8), 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2)...)},
	{"udp", datagram(5000, 6000, make([]byte, 30))},
	{"empty udp", datagram(5000, 6000, nil)},
	{"dns request", datagram(5000, 53, builder.DNS(0xabcd, false))},
	{"dns response", datagram(53, 5000, builder.DNS(0xabcd, true))},
	{"dns too short", datagram(5000, 53, builder.DNS(0xabcd, false)[:11])},
	{"dns upper case", datagram(5000, 53, question(1, "\x03WwW\x07exAMple\x03org\x00"))},
	{"dns root", datagram(5000, 53, question(1, "\x00"))},
	{"dns without a question", datagram(5000, 53, question(0, "\x01a\x00"))},
	{"dns header only", datagram(5000, 53, question(1, ""))},
	{"dns compressed", datagram(5000, 53, question(1, "\x01a\xc0\x0c"))},
	{"dns label of 63", datagram(53, 5000, question(1, label(63)+"\x00"))},
	{"dns label of 64", datagram(53, 5000, question(1, label(64)+"\x00"))},
	{"dns name of 255", datagram(5000, 53, question(1, label(63)+label(63)+label(63)+label(61)+"\x00"))},
	{"dns name of 256", datagram(5000, 53, question(1, label(63)+label(63)+label(63)+label(62)+"\x00"))},
	{"dns 127 labels", datagram(5000, 53, question(1, strings.Repeat("\x01b", 127)+"\x00"))},
	{"dns 128 labels", datagram(5000, 53, question(1, strings.Repeat("\x01b", 128)+"\x00"))},
	{"dns name beyond the message", datagram(5000, 53, question(1, "\x07exam")[:17])},
	{"dns name of odd bytes", datagram(5000, 53, question(2, "\x06@Z[\x7f\x80\xda\x05\x00\xff`z{\x00\x00"))},
	{"ntp request", datagram(123, 123, builder.NTP(0x0102030405060708, false))},
	{"ntp response", datagram(123, 5000, builder.NTP(0x0102030405060708, true))},
	{"ntp broadcast", datagram(123, 123, append([]byte{0x25}, make([]byte, 47)...))},
	{"dns and ntp", datagram(53, 123, builder.NTP(99, true))},
	{"rtp", datagram(5004, 5004, []byte{0x80, 0x60, 0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 2})},
	{"rtcp", datagram(5005, 5005, []byte{0x80, 200, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2})},
	{"rtp too short", datagram(5004, 5004, []byte{0x80, 0x60, 0x12, 0x34, 0, 0, 0, 1, 0, 0, 0})},
	{"rtp version 1", datagram(5004, 5004, []byte{0x40, 0x60, 0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 2})},
	{"echo", echo(false)},
	{"echo reply", echo(true)},
	{"unreachable", other(builder.ProtoICMP, 3, 1, 0, 0, 0, 0, 0, 0)},
	{"neighbour solicitation", other(builder.ProtoICMPv6, 135, 0, 0, 0, 0, 0, 0, 0)},
	{"icmp too short", other(builder.ProtoICMP, 8, 0, 0, 0)},
	{"esp", other(builder.ProtoESP, 1, 2, 3, 4, 5, 6, 7, 8)},
	{"no next header", other(builder.ProtoNoNext)},
	{"padding after no next header", other(builder.ProtoNoNext, 0, 0, 0, 0, 0, 0)},
	{"pptp", other(builder.ProtoGRE, 0x30, 0x81, 0x88, 0x0b, 0, 4, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4)},
	{"gre with a source route", other(builder.ProtoGRE, 0x40, 0, 8, 0, 0, 0, 0, 0)},
	{"gre of something", other(builder.ProtoGRE, 0, 0, 0x88, 0xbe, 0, 0, 0, 0)},
	{"tcp header too short", other(builder.ProtoTCP, make([]byte, 19)...)},
	{"tcp of 4 words", other(builder.ProtoTCP, append(make([]byte, 12), 0x40, 2, 0, 0, 0, 0, 0, 0)...)},
	{"tcp beyond the packet", other(builder.ProtoTCP, append(make([]byte, 12), 0x60, 2, 0, 0, 0, 0, 0, 0)...)},
}

// question is a DNS message with a question for a name in wire format.
func question(questions byte, name string) []byte {
	return append([]byte{0, 7, 1, 0, 0, questions, 0, 0, 0, 0, 0, 0}, name+"\x00\x01\x00\x01"...)
}

func label(n int) string { return string(rune(n)) + strings.Repeat("Q", n) }

func nops(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 1
	}
	return b
}

func within(kind builder.Tunnel, src, dst netip.Addr, change func(*builder.Outer)) func(*builder.Spec) {
	return func(s *builder.Spec) {
		s.Outer = &builder.Outer{Kind: kind, Src: src, Dst: dst, SrcPort: 1111, VNI: 42}
		change(s.Outer)
	}
}

func plain(*builder.Outer) {}

var tunnelParts = []part{
	{"no tunnel", func(*builder.Spec) {}},
	{"ipip", within(builder.IPIP, c4, d4, plain)},
	{"ipip over 6", within(builder.IPIP, a6, b6, plain)},
	{"gre", within(builder.GRE, c4, d4, plain)},
	{"gre with all fields", within(builder.GRE, c4, d4, func(o *builder.Outer) { o.GREKey, o.GRESeq, o.GRESum = true, true, true })},
	{"bridged gre", within(builder.GRE, a6, b6, func(o *builder.Outer) { o.Bridged, o.InnerVLANs = true, tags(10) })},
	{"vxlan", within(builder.VXLAN, c4, d4, plain)},
	{"vxlan with vlans", within(builder.VXLAN, c4, d4, func(o *builder.Outer) { o.InnerVLANs = tags(1, 2, 3) })},
	{"geneve", within(builder.GENEVE, c4, d4, plain)},
	{"bridged geneve with options", within(builder.GENEVE, a6, b6, func(o *builder.Outer) { o.Bridged, o.Options = true, make([]byte, 60) })},
}

// odd are frames that no combination of the parts above produces.
func odd() map[string]packet.Frame {
	base := builder.MustBuild(&builder.Spec{IP: builder.IP{Src: a6, Dst: b6}, TCP: &builder.TCP{Flags: packet.SYN}, PayloadLen: 70000, Time: 1})
	change := func(f packet.Frame, at int, b ...byte) packet.Frame {
		f.Data = append([]byte(nil), f.Data...)
		copy(f.Data[at:], b)
		return f
	}
	pppoe := builder.MustBuild(&builder.Spec{PPPoE: true, IP: builder.IP{Src: a4, Dst: b4}, TCP: &builder.TCP{Flags: packet.SYN}, Time: 1})
	v4 := builder.MustBuild(&builder.Spec{IP: builder.IP{Src: a4, Dst: b4}, TCP: &builder.TCP{Flags: packet.SYN}, Time: 1})
	compressed := change(pppoe, 20, append([]byte{0x21}, pppoe.Data[22:]...)...)
	compressed.Data, compressed.Len = compressed.Data[:len(compressed.Data)-1], compressed.Len-1
	return map[string]packet.Frame{
		"jumbo option below 65,536":      change(base, 58, 0, 0, 255, 255),
		"jumbo option of 0":              change(base, 58, 0, 0, 0, 0),
		"jumbo option of all ones":       change(base, 58, 255, 255, 255, 255),
		"jumbo option that is another":   change(base, 56, 0x05, 0x02),
		"pppoe discovery":                change(pppoe, 15, 9),
		"pppoe version 2":                change(pppoe, 14, 0x21),
		"pppoe with compressed protocol": compressed,
		"pppoe control":                  change(pppoe, 20, 0xc0, 0x21),
		"version 5":                      change(v4, 14, 0x55),
		"header of 4 words":              change(v4, 14, 0x44),
		"total length below header":      change(v4, 16, 0, 19),
		"version 6 as ethertype 4":       change(v4, 14, 0x60),
		"802.3 length":                   change(v4, 12, 0, 40),
		"arp":                            change(v4, 12, 8, 6),
		"empty raw":                      {Time: 1, Link: packet.LinkRaw},
		"empty ethernet":                 {Time: 1, Len: 60},
		"raw of one byte":                {Time: 1, Link: packet.LinkRaw, Data: []byte{0x45}, Len: 40},
		"raw that is not ip":             {Time: 1, Link: packet.LinkRaw, Data: []byte{0x15, 1, 2, 3}, Len: 4},
	}
}

// combinations visits links x networks, and networks x transports x tunnels on plain Ethernet.
func combinations(visit func(name string, s *builder.Spec)) {
	combine := func(parts ...part) {
		s := builder.Spec{Time: 1, Interface: 3, Direction: packet.Ingress}
		name := ""
		for _, p := range parts {
			p.apply(&s)
			name += p.name + " / "
		}
		visit(name, &s)
	}
	for _, link := range linkParts {
		for _, network := range networkParts {
			for _, transport := range []part{transportParts[0], transportParts[17], transportParts[26]} {
				combine(link, network, transport)
			}
		}
	}
	for _, network := range networkParts {
		for _, transport := range transportParts {
			for _, tunnel := range tunnelParts {
				combine(network, transport, tunnel)
			}
		}
	}
}

// crafted are all frames that the builder can make of the parts, and odd ones.
func crafted(tb testing.TB) (names []string, frames []packet.Frame) {
	tb.Helper()
	combinations(func(name string, s *builder.Spec) {
		f, err := builder.Build(s)
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		names, frames = append(names, name), append(frames, f)
	})
	for name, f := range odd() {
		names, frames = append(names, name), append(frames, f)
	}
	return names, frames
}

// Crafted packets on every way, each whole and cut at some random place, over a vector full of garbage.
func TestCraftedPackets(t *testing.T) {
	random := rand.New(rand.NewPCG(testutil.Seed(t), 1))
	names, frames := crafted(t)
	for _, decap := range []bool{false, true} {
		p := newProbe(t, decap, live, tc, egress, tunXDP, tunTC)
		for i := range frames {
			f := frames[i]
			if err := p.poison(); err != nil {
				t.Fatal(err)
			}
			p.verify(t, names[i], &f, decap)
			f.Data = f.Data[:random.IntN(len(f.Data)+1)]
			p.verify(t, fmt.Sprintf("%scut at %d", names[i], len(f.Data)), &f, decap)
			if t.Failed() && i > 100 {
				t.FailNow() // the first ones suffice
			}
		}
	}
	t.Logf("%d crafted packets", len(frames))
}

// The crafted packets reach every reason and every bit of the vector that a single packet can.
func TestCraftedPacketsReachEverything(t *testing.T) {
	_, frames := crafted(t)
	reasons, valid := map[packet.Reason]int{}, packet.Valid(0)
	for i := range frames {
		for _, decap := range []bool{false, true} {
			var p packet.Packet
			reasons[packet.Decode(&frames[i], packet.DecodeOptions{Decap: decap}, &p)]++
			valid |= p.Valid
		}
	}
	for r := range packet.Reasons {
		if reasons[r] == 0 && r != packet.Truncated { // those are the cut ones
			t.Errorf("no crafted packet is %s", r)
		}
	}
	all := packet.Valid(1<<len(validBits) - 1)
	if missing := all &^ valid &^ (packet.Aggregate | packet.IsEgress); missing != 0 {
		t.Errorf("no crafted packet has %s", validNames(missing))
	}
}

// Every truncation of packets with every kind of header.
func TestTruncations(t *testing.T) {
	var frames []packet.Frame
	var names []string
	combinations(func(name string, s *builder.Spec) {
		if s.Outer != nil && s.Outer.Kind == builder.IPIP || s.TCP != nil && len(s.TCP.Options) < 16 {
			return
		}
		f := builder.MustBuild(s)
		names, frames = append(names, name), append(frames, f)
	})
	const every = 16 // of the combinations, always other ones
	first := int(testutil.Seed(t) % every)
	for _, decap := range []bool{false, true} {
		p := newProbe(t, decap)
		for i := first; i < len(frames); i += every {
			for cut := range frames[i].Data {
				f := frames[i]
				f.Data = f.Data[:cut]
				p.verify(t, fmt.Sprintf("%scut at %d", names[i], cut), &f, decap)
				if t.Failed() {
					return
				}
			}
		}
	}
}
