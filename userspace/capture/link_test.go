package capture

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// bare is a TCP segment without a link header.
func bare(t *testing.T) packet.Frame {
	t.Helper()
	return builder.MustBuild(&builder.Spec{
		Time: 1000, Link: packet.LinkRaw, PayloadLen: 500,
		IP:  builder.IP{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")},
		TCP: &builder.TCP{SrcPort: 1, DstPort: 2, Seq: 3},
	})
}

// sll is a cooked header of version 1, of a frame with one VLAN tag when vlan is not 0.
func sll(kind byte, vlan uint16) []byte {
	h := []byte{0, kind, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0xaa, 0xbb}
	return append(h, protocols(vlan)...)
}

func sll2(kind byte, ifindex byte, vlan uint16) []byte {
	proto := protocols(vlan)
	h := append(bytes.Clone(proto[:2]), 0, 0, 0, 0, 0, ifindex, 0, 1, kind, 6, 2, 0, 0, 0, 0, 9, 0xaa, 0xbb)
	return append(h, proto[2:]...)
}

// protocols is the EtherType, or a tag and the EtherType after it.
func protocols(vlan uint16) []byte {
	if vlan == 0 {
		return []byte{8, 0}
	}
	return append(binary.BigEndian.AppendUint16([]byte{0x81, 0}, vlan), 8, 0)
}

func TestLinkTypes(t *testing.T) {
	for _, c := range []struct {
		name  string
		link  uint32
		head  []byte
		frame packet.Frame // link, direction, interface
		front int          // bytes in front of the IP header that remain
		vlan  uint16
	}{
		{name: "raw", link: 101, frame: packet.Frame{Link: packet.LinkRaw}},
		{name: "raw 12", link: 12, frame: packet.Frame{Link: packet.LinkRaw}},
		{name: "raw 14", link: 14, frame: packet.Frame{Link: packet.LinkRaw}},
		{name: "ipv4", link: 228, frame: packet.Frame{Link: packet.LinkRaw}},
		{name: "null little", link: 0, head: []byte{2, 0, 0, 0}, frame: packet.Frame{Link: packet.LinkRaw}},
		{name: "null big", link: 0, head: []byte{0, 0, 0, 2}, frame: packet.Frame{Link: packet.LinkRaw}},
		{name: "loop", link: 108, head: []byte{0, 0, 0, 2}, frame: packet.Frame{Link: packet.LinkRaw}},
		{name: "sll in", link: 113, head: sll(0, 0), front: 14},
		{name: "sll out", link: 113, head: sll(4, 0), front: 14, frame: packet.Frame{Direction: packet.Egress}},
		{name: "sll vlan", link: 113, head: sll(0, 77), front: 18, vlan: 77},
		{name: "sll2 in", link: 276, head: sll2(0, 3, 0), front: 14, frame: packet.Frame{Interface: 3}},
		{name: "sll2 out", link: 276, head: sll2(4, 3, 0), front: 14, frame: packet.Frame{Interface: 3, Direction: packet.Egress}},
		{name: "sll2 vlan", link: 276, head: sll2(0, 3, 78), front: 18, vlan: 78, frame: packet.Frame{Interface: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := bare(t)
			f.Data = append(bytes.Clone(c.head), f.Data...)
			f.Len += len(c.head)
			got := mustRead(t, classic(binary.LittleEndian, magicNano, c.link, f))
			if len(got) != 1 {
				t.Fatalf("%d frames", len(got))
			}
			g := got[0]
			if g.Link != c.frame.Link || g.Direction != c.frame.Direction || g.Interface != c.frame.Interface {
				t.Errorf("frame %+v, want %+v", g, c.frame)
			}
			var p packet.Packet
			if reason := packet.Decode(&g, packet.DecodeOptions{}, &p); reason != packet.Parsed {
				t.Fatalf("decode: %v", reason)
			}
			if p.Seq != 3 || p.Payload != 500 || p.VLAN != c.vlan || int(p.Len) != c.front+540 || g.Len != c.front+540 {
				t.Errorf("decoded %+v of a frame of %d bytes", p, g.Len)
			}
			if c.front > 0 && !bytes.Equal(g.Data[:12], make([]byte, 12)) {
				t.Errorf("addresses % x, want zeros", g.Data[:12])
			}
		})
	}
}

func TestCutInLinkHeader(t *testing.T) {
	for link, size := range map[uint32]int{0: 4, 108: 4, 113: 16, 276: 20, 101: 0, 1: 14} {
		for n := range size + 1 {
			f := packet.Frame{Time: 1, Data: make([]byte, n), Len: 100}
			if link == 0 && n == 4 {
				f.Data[0] = 2
			}
			if link == 108 && n == 4 {
				f.Data[3] = 2
			}
			got := mustRead(t, classic(binary.LittleEndian, magicNano, link, f))
			if len(got) != 1 {
				t.Errorf("link %d with %d bytes: %d frames", link, n, len(got))
				continue
			}
			var p packet.Packet
			reason := packet.Decode(&got[0], packet.DecodeOptions{}, &p)
			if reason != packet.Truncated && (n < size || reason != packet.NotIP) {
				t.Errorf("link %d with %d bytes: %v", link, n, reason)
			}
			if got[0].Len < len(got[0].Data) {
				t.Errorf("link %d with %d bytes: length %d", link, n, got[0].Len)
			}
		}
	}
}

func TestUnsupportedLinksAreCounted(t *testing.T) {
	w := newNG(binary.LittleEndian)
	for _, link := range []uint16{1, 9, 105, 290, 0} {
		w.iface(link, 0)
	}
	w.enhanced(1, 1, payload(60, 1), 60)
	w.enhanced(0, 1, payload(60, 2), 60)
	w.enhanced(2, 1, payload(60, 3), 60)
	w.enhanced(3, 1, payload(60, 4), 60)
	w.enhanced(1, 1, payload(60, 5), 60)
	w.enhanced(4, 1, []byte{7, 0, 0, 0, 0x45, 0}, 6) // AF_OSI with what looks like IPv4
	r, err := NewReader("mixed", bytes.NewReader(w.buf))
	if err != nil {
		t.Fatal(err)
	}
	frames, _ := readAll(r)
	checkFrames(t, frames, []packet.Frame{{Time: 1000, Data: payload(60, 2), Len: 60}})
	want := map[string]uint64{
		"link type 9 (PPP)": 2, "link type 105 (802.11)": 1, "link type 290": 1, "loopback packet of address family 7": 1,
	}
	got := r.Skipped()
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d, want %d", name, got[name], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("skipped %v", got)
	}
	if r.Packets() != 6 {
		t.Errorf("%d packets, want 6", r.Packets())
	}
}
