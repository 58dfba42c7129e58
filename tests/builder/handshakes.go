package builder

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Handshakes is a capture of n TCP handshakes, one per millisecond, of which number i takes 1 + i % 100 ms.
func Handshakes(t testing.TB, n int) []byte {
	t.Helper()
	const ms = 1_000_000
	server, frames := netip.MustParseAddr("192.0.2.1"), map[int64][]packet.Packet{}
	for i := range n {
		client := netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)})
		syn := packet.Packet{Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, TCPFlags: packet.SYN, Src: client, Dst: server,
			SrcPort: 40000, DstPort: 443, Seq: uint32(1000 * i), Segs: 1}
		answer := syn
		answer.Src, answer.Dst, answer.SrcPort, answer.DstPort = server, client, 443, 40000
		answer.TCPFlags, answer.Seq, answer.Ack = packet.SYN|packet.ACK, 7, syn.Seq+1
		syn.Time, answer.Time = int64(1e18)+int64(i)*ms, int64(1e18)+int64(i+1+i%100)*ms
		frames[syn.Time] = append(frames[syn.Time], syn)
		frames[answer.Time] = append(frames[answer.Time], answer)
	}
	return written(t, frames, int64(1e18), ms, n+200)
}

func written(t testing.TB, frames map[int64][]packet.Packet, start, step int64, steps int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewPcapWriter(&b, packet.LinkEthernet)
	if err != nil {
		t.Fatal(err)
	}
	var packer Packer
	for i := range steps {
		for _, p := range frames[start+int64(i)*step] {
			var f packet.Frame
			if err := packer.Frame(&p, &f); err != nil {
				t.Fatal(err)
			}
			if err := w.Write(&f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
