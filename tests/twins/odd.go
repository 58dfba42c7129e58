package twins

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

var (
	client4, server4 = netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("192.0.2.80")
	client6, server6 = netip.MustParseAddr("2001:db8::7"), netip.MustParseAddr("2001:db8:1::80")
)

// oddFrames are packets of every kind that a parser treats differently, with TCP data inside wherever possible.
func oddFrames() [][]packet.Frame {
	around := aroundTCP()
	return [][]packet.Frame{segments(), around, damaged(around)}
}

// adder collects the frames of a packet by IPv4 and by IPv6, as far as there can be both.
func adder(frames *[]packet.Frame) func(change func(*builder.Spec)) {
	ip4, ip6 := builder.IP{Src: client4, Dst: server4, ID: 77}, builder.IP{Src: client6, Dst: server6}
	return func(change func(*builder.Spec)) {
		for _, ip := range []builder.IP{ip4, ip6} {
			s := builder.Spec{IP: ip, TCP: &builder.TCP{SrcPort: 4000, DstPort: 80, Seq: 1000, Ack: 5, Flags: packet.ACK}, PayloadLen: 100}
			change(&s)
			if f, err := builder.Build(&s); err == nil {
				*frames = append(*frames, f)
			}
		}
	}
}

// segments with every length of a TCP header, the flags that matter, and no payload, one byte, or more.
func segments() (frames []packet.Frame) {
	add := adder(&frames)
	for words := range 11 {
		options := make([]byte, 4*words)
		for i := range options {
			options[i] = 1
		}
		for _, flags := range []uint8{packet.SYN, packet.SYN | packet.ACK, packet.ACK, packet.ACK | packet.PSH, packet.RST, packet.FIN | packet.ACK} {
			for _, payload := range []int{0, 1, 400} {
				add(func(s *builder.Spec) {
					s.TCP = &builder.TCP{SrcPort: 4000, DstPort: uint16(8000 + words), Seq: 1000, Ack: 1001, Flags: flags, Options: options}
					s.PayloadLen = payload
				})
			}
		}
	}
	return frames
}

func aroundTCP() (frames []packet.Frame) {
	add := adder(&frames)

	tags := func(n int) []builder.VLAN {
		return []builder.VLAN{{ID: 9, TPID: 0x88a8}, {ID: 10}, {ID: 11, TPID: 0x9100}, {ID: 12}}[:n]
	}
	for n := range 5 {
		add(func(s *builder.Spec) { s.VLANs = tags(n) })
		add(func(s *builder.Spec) { s.MPLS = []uint32{16, 17, 18, 19, 20}[:n+1] })
	}
	add(func(s *builder.Spec) { s.PPPoE = true })
	add(func(s *builder.Spec) { s.IP.Options = []byte{1, 1, 1, 1} })
	add(func(s *builder.Spec) { s.IP.Options = make([]byte, 20) })
	add(func(s *builder.Spec) { s.IP.MoreFragments = true })
	add(func(s *builder.Spec) { s.IP.Offset = 80 })
	add(func(s *builder.Spec) { s.IP.Offset, s.TCP, s.UDP = 80, nil, &builder.UDP{SrcPort: 53, DstPort: 4000} })
	add(func(s *builder.Spec) {
		s.IP.Offset, s.IP.MoreFragments, s.TCP, s.UDP = 33_000, true, nil, &builder.UDP{SrcPort: 7, DstPort: 8}
	})
	add(func(s *builder.Spec) { s.IP.ZeroLength = true })
	add(func(s *builder.Spec) { s.TCP, s.UDP = nil, &builder.UDP{SrcPort: 53, DstPort: 4000} })
	add(func(s *builder.Spec) { s.TCP, s.Echo = nil, &builder.Echo{ID: 7, Seq: 1} })
	add(func(s *builder.Spec) { s.TCP, s.Proto = nil, 50 })
	add(func(s *builder.Spec) {
		s.IP.Extensions = []builder.Extension{{Proto: builder.ProtoHopByHop, Body: make([]byte, 6)}}
	})
	add(func(s *builder.Spec) {
		s.IP.Extensions = []builder.Extension{{Proto: builder.ProtoAH, Body: make([]byte, 10)}}
	})
	add(func(s *builder.Spec) { s.IP.Src, s.IP.Dst = netip.MustParseAddr("0.0.0.9"), server4 })
	add(func(s *builder.Spec) { s.IP.Src, s.IP.Dst = netip.IPv6LinkLocalAllNodes(), server6 })
	add(func(s *builder.Spec) { s.IP.Src, s.IP.Dst = netip.IPv6Loopback(), server6 })
	add(func(s *builder.Spec) { s.IP, s.EtherType, s.TCP = builder.IP{}, builder.EtherARP, nil })
	add(func(s *builder.Spec) { s.Outer = &builder.Outer{Kind: builder.GRE, Src: client4, Dst: server4} })
	return frames
}

// damaged frames: cut at odd places, and with bytes that cannot be.
func damaged(whole []packet.Frame) []packet.Frame {
	var frames []packet.Frame
	first, first6 := whole[0], whole[1]
	for _, n := range []int{10, 14, 20, 33, 34, 40, 50, 53} {
		f := first
		f.Data, f.Len = f.Data[:min(n, len(f.Data))], min(n, len(f.Data))
		frames = append(frames, f)
	}
	change := func(f packet.Frame, at int, to ...byte) {
		f.Data = append([]byte(nil), f.Data...)
		copy(f.Data[at:], to)
		frames = append(frames, f)
	}
	change(first, 14, 0x55) // version
	change(first, 14, 0x44) // header length
	change(first, 46, 0x40) // of TCP
	change(first, 46, 0x10)
	change(first, 46, 0xf0) // longer than the packet
	change(first, 17, 20)   // the IP header alone
	change(first6, 14, 0x40)
	for _, next := range []byte{0, 43, 44, 51, 60, 135, 139, 140} {
		change(first6, 20, next)
	}
	change(first, 12, 0x81, 0, 0, 1, 0x08, 0x06)                         // ARP after a tag
	change(first, 12, 0x81, 0, 0, 1, 0x81, 0, 0, 1, 0x88, 0xcc)          // LLDP after two
	change(first, 12, 0x81, 0, 0, 1, 0x81, 0, 0, 1, 0x81, 0, 0, 1, 8, 6) // ... and after three
	change(first, 12, 0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0xc0, 0x21)       // LCP
	change(first, 12, 0x88, 0x47, 0, 1, 1, 64, 0x10)                     // neither IPv4 nor IPv6 after a label
	return frames
}
