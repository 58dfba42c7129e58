package builder

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func randomAddr(r *rand.Rand, v6 bool) netip.Addr {
	if v6 {
		b := [16]byte{0x20, 1, 0xd, 0xb8}
		for i := 4; i < 16; i++ {
			b[i] = byte(r.Uint32())
		}
		return netip.AddrFrom16(b)
	}
	v := r.Uint32()
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// randomPacket is any packet that a Packer makes.
func randomPacket(r *rand.Rand) packet.Packet {
	v6 := r.IntN(2) == 0
	p := packet.Packet{
		Time: r.Int64N(1<<60) + 1, Valid: packet.IP, Src: randomAddr(r, v6), Dst: randomAddr(r, v6),
		Segs: 1, Payload: r.Uint32N(60000), Interface: r.Uint32(),
	}
	if r.IntN(4) == 0 {
		p.Valid |= packet.VLAN
		p.VLAN = uint16(r.UintN(4096))
	}
	if !v6 {
		p.Valid |= packet.IPID
		p.IPID = uint16(r.Uint32())
	}
	if r.IntN(2) == 0 {
		p.Valid |= packet.IsEgress
	}
	randomTransport(r, &p)
	return p
}

func randomTransport(r *rand.Rand, p *packet.Packet) {
	p.SrcPort, p.DstPort = uint16(1024+r.UintN(60000)), uint16(1024+r.UintN(60000))
	switch r.IntN(5) {
	case 0:
		p.Valid |= packet.Ports | packet.UDP
		p.Proto = ProtoUDP
	case 1:
		p.Valid |= packet.ICMP
		p.Proto, p.ICMPType = ProtoICMP, 8
		if !p.Src.Is4() {
			p.Proto, p.ICMPType = ProtoICMPv6, 129
		}
		p.DstPort, p.Seq = p.SrcPort, r.Uint32N(1<<16)
	case 2:
		p.Valid |= packet.Ports | packet.UDP | packet.AppRequest
		p.Proto, p.DstPort, p.AppID = ProtoUDP, 53, uint64(r.UintN(1<<16))
		if r.IntN(2) == 0 {
			p.Valid ^= packet.AppRequest | packet.AppResponse
			p.DstPort, p.AppID = 123, r.Uint64()
		} else {
			p.Valid |= packet.HasQName
			p.QName = "\x07example\x03org\x00" // what DNS asks for
		}
		p.Payload += 48
	default:
		p.Valid |= packet.Ports | packet.TCP
		p.Proto, p.Seq, p.Ack, p.TCPFlags, p.Window = ProtoTCP, r.Uint32(), r.Uint32(), byte(r.Uint32()), 65535
		if r.IntN(2) == 0 {
			p.Valid |= packet.TSOpt
			p.TSVal, p.TSEcr = r.Uint32(), r.Uint32()
		}
	}
}

// A packet is unchanged after Packer, a capture file and Decode.
func TestRoundTrip(t *testing.T) {
	seed := testutil.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	var file bytes.Buffer
	w, err := NewPcapWriter(&file, packet.LinkEthernet)
	if err != nil {
		t.Fatal(err)
	}
	packer := Packer{Checksums: true}
	sent := make([]packet.Packet, 20000)
	for i := range sent {
		p := randomPacket(r)
		size, err := packer.Len(&p)
		if err != nil {
			t.Fatal(err)
		}
		p.Len = uint32(size)
		var f packet.Frame
		if err := packer.Frame(&p, &f); err != nil {
			t.Fatal(err)
		}
		if err := w.Write(&f); err != nil {
			t.Fatal(err)
		}
		checkSums(t, &p, f.Data)
		sent[i] = p
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	checkCapture(t, &file, sent)
}

func checkCapture(t *testing.T, file io.Reader, sent []packet.Packet) {
	t.Helper()
	src, err := capture.NewReader("written", file)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range sent {
		var f packet.Frame
		var got packet.Packet
		if err := src.Next(&f); err != nil {
			t.Fatalf("packet %d: %v", i, err)
		}
		reason := packet.Decode(&f, packet.DecodeOptions{}, &got)
		got.Begin = 0 // of the payload, which is no field of a packet to be built: TestBegin
		// not stored in a pcap file
		got.Interface, got.Valid = want.Interface, got.Valid|want.Valid&packet.IsEgress
		if reason != packet.Parsed || got != want {
			t.Fatalf("packet %d: %v\n%+v, want\n%+v", i, reason, got, want)
		}
	}
	if err := src.Next(new(packet.Frame)); err != io.EOF {
		t.Errorf("after the last: %v", err)
	}
}

// checkSums adds up what a receiver would add up; missing payload is zeros.
func checkSums(t *testing.T, p *packet.Packet, data []byte) {
	t.Helper()
	l3 := 14
	if p.Has(packet.VLAN) {
		l3 = 18
	}
	l4 := l3 + 40
	if p.Src.Is4() {
		l4 = l3 + 20
		if sum := checksum(data[l3:l4], 0); sum != 0 {
			t.Fatalf("IPv4 checksum of %+v leaves %#x", p, sum)
		}
	}
	proto := p.Proto
	if sum := checksum(data[l4:], pseudo(p.Src, p.Dst, proto, int(p.Len)-l4)); sum != 0 {
		t.Fatalf("transport checksum of %+v leaves %#x", p, sum)
	}
}

// gopacket and tshark judge complete frames of every transport, extension and tunnel.
func completeSpecs() map[string]Spec {
	a4, b4 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	a6, b6 := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	tcp := &TCP{SrcPort: 40001, DstPort: 40002, Seq: 1, Ack: 2, Flags: packet.ACK, Window: 9, Options: Timestamps(1, 2)}
	specs := map[string]Spec{
		"tcp4":      {IP: IP{Src: a4, Dst: b4, Options: []byte{1, 1, 1}}, TCP: tcp},
		"tcp6":      {IP: IP{Src: a6, Dst: b6, Extensions: []Extension{{ProtoDestination, []byte{1, 4, 0, 0, 0, 0}}}}, TCP: tcp},
		"udp4":      {IP: IP{Src: a4, Dst: b4}, UDP: &UDP{40001, 40002}, VLANs: []VLAN{{ID: 3}, {ID: 4}}},
		"udp6":      {IP: IP{Src: a6, Dst: b6}, UDP: &UDP{40001, 40002}, PPPoE: true},
		"echo4":     {IP: IP{Src: a4, Dst: b4}, Echo: &Echo{ID: 1, Seq: 2}, MPLS: []uint32{16, 17}},
		"echo6":     {IP: IP{Src: a6, Dst: b6}, Echo: &Echo{Reply: true, ID: 1, Seq: 2}},
		"dns":       {IP: IP{Src: a4, Dst: b4}, UDP: &UDP{40001, 53}, Payload: DNS(9, false)},
		"ntp":       {IP: IP{Src: a4, Dst: b4}, UDP: &UDP{123, 40001}, Payload: NTP(9, true)},
		"ipip":      {IP: IP{Src: a4, Dst: b4}, TCP: tcp, Outer: &Outer{Kind: IPIP, Src: a6, Dst: b6}},
		"gre":       {IP: IP{Src: a6, Dst: b6}, TCP: tcp, Outer: &Outer{Kind: GRE, Src: a4, Dst: b4, GREKey: true}},
		"vxlan":     {IP: IP{Src: a4, Dst: b4}, TCP: tcp, Outer: &Outer{Kind: VXLAN, Src: a4, Dst: b4, SrcPort: 50007, VNI: 5}},
		"geneve":    {IP: IP{Src: a6, Dst: b6}, TCP: tcp, Outer: &Outer{Kind: GENEVE, Src: a4, Dst: b4, SrcPort: 50007, VNI: 5, Options: make([]byte, 8)}},
		"odd bytes": {IP: IP{Src: a4, Dst: b4}, UDP: &UDP{40001, 40003}, Payload: []byte{1, 2, 3}},
	}
	for name, s := range specs {
		s.Time, s.Checksums, s.Whole = 1e9, true, true
		if s.Payload == nil {
			s.PayloadLen = 101
		}
		specs[name] = s
	}
	return specs
}

func TestGopacketDecodesAll(t *testing.T) {
	for name, s := range completeSpecs() {
		f := MustBuild(&s)
		if f.Len != len(f.Data) {
			t.Errorf("%s: a whole frame with %d of %d bytes", name, len(f.Data), f.Len)
		}
		p := gopacket.NewPacket(f.Data, layers.LayerTypeEthernet, gopacket.Default)
		if p.ErrorLayer() != nil {
			t.Errorf("%s: %v", name, p.ErrorLayer().Error())
		}
		if p.Metadata().Truncated {
			t.Errorf("%s: gopacket misses bytes", name)
		}
	}
}

// tshark verifies every checksum and length; it would mark a frame as malformed or a checksum as bad.
func TestTsharkAcceptsAll(t *testing.T) {
	tshark := testutil.NeedTool(t, "tshark")
	path := filepath.Join(t.TempDir(), "all.pcap")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := NewPcapWriter(file, packet.LinkEthernet)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, s := range completeSpecs() {
		f := MustBuild(&s)
		if err := w.Write(&f); err != nil {
			t.Fatal(err)
		}
		n++
		t.Logf("frame %d: %s", n, name)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-n", "-r", path, "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
		"-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "occurrence=a", "-e", "frame.number", "-e", "_ws.malformed", "-e", "_ws.expert.message",
		"-e", "tcp.checksum.status", "-e", "udp.checksum.status", "-e", "icmp.checksum.status", "-e", "icmpv6.checksum.status").Output()
	if err != nil {
		t.Fatal(err)
	}
	const bad = "0"
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != n {
		t.Fatalf("tshark read %d frames of %d", len(lines), n)
	}
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		verified := strings.Join(fields[3:], "")
		if fields[1] != "" || strings.Contains(strings.ToLower(fields[2]), "malformed") || strings.Contains(fields[2], "incorrect") ||
			strings.Contains(verified, bad) || !strings.Contains(verified, "1") {
			t.Errorf("tshark: %q", line)
		}
	}
}

func TestImpossibleSpecs(t *testing.T) {
	a4, b4 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	a6 := netip.MustParseAddr("2001:db8::1")
	ip := IP{Src: a4, Dst: b4}
	for name, s := range map[string]Spec{
		"mixed families":  {IP: IP{Src: a4, Dst: a6}},
		"one address":     {IP: IP{Src: a4}},
		"tcp options":     {IP: ip, TCP: &TCP{Options: make([]byte, 41)}},
		"ip options":      {IP: IP{Src: a4, Dst: b4, Options: make([]byte, 41)}},
		"odd offset":      {IP: IP{Src: a4, Dst: b4, Offset: 9}},
		"two transports":  {IP: ip, TCP: &TCP{}, UDP: &UDP{}},
		"short payload":   {IP: ip, Payload: make([]byte, 9), PayloadLen: 8},
		"tag without eth": {Link: packet.LinkRaw, IP: ip, VLANs: []VLAN{{ID: 1}}},
		"pppoe and mpls":  {IP: ip, PPPoE: true, MPLS: []uint32{1}},
		"unknown tunnel":  {IP: ip, Outer: &Outer{Kind: 99, Src: a4, Dst: b4}},
	} {
		if _, err := Build(&s); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var k Packer
	for _, v := range []packet.Valid{0, packet.IP | packet.Fragment, packet.IP | packet.Tunnel} {
		if err := k.Frame(&packet.Packet{Valid: v, Src: a4, Dst: b4}, new(packet.Frame)); !errors.Is(err, ErrSpec) {
			t.Errorf("packet with valid %#x: %v", v, err)
		}
	}
}

func TestPackerAboveSixtyFourKilobytes(t *testing.T) {
	var k Packer
	p := packet.Packet{Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: ProtoTCP, Window: 65535, Segs: 1, Payload: 100000,
		Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), Len: 100054}
	var f packet.Frame
	if err := k.Frame(&p, &f); err != nil {
		t.Fatal(err)
	}
	var got packet.Packet
	if packet.Decode(&f, packet.DecodeOptions{}, &got); got != p {
		t.Errorf("decoded %+v, want %+v", got, p)
	}
	p.Src, p.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	if err := k.Frame(&p, &f); !errors.Is(err, ErrSpec) {
		t.Errorf("IPv6 jumbogram: %v", err)
	}
}

// The bar is 5 million plain TCP headers a second: 200 ns.
func BenchmarkPacker(b *testing.B) {
	for _, c := range []struct {
		name      string
		v6, check bool
	}{{"tcp4", false, false}, {"tcp4 with checksums", false, true}, {"tcp6", true, false}} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			p := packet.Packet{Valid: packet.IP | packet.Ports | packet.TCP, Proto: ProtoTCP, Src: randomAddr(r, c.v6), Dst: randomAddr(r, c.v6)}
			k := Packer{Checksums: c.check}
			var f packet.Frame
			b.ReportAllocs()
			for b.Loop() {
				p.Seq++
				if err := k.Frame(&p, &f); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpackets/s")
		})
	}
}
