package twins

import (
	"bytes"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// sumOf words in ones' complement.
func sumOf(b []byte) (sum int) {
	for i := 0; i < len(b); i += 2 {
		sum += int(b[i])<<8 | int(b[i+1])
		sum = sum&0xffff + sum>>16
	}
	return sum
}

// TestMarked: a packet that the test classifies as marked is one that was built with the mark.
func TestMarked(t *testing.T) {
	for _, ip := range []builder.IP{{Src: client4, Dst: server4, ID: 77}, {Src: client6, Dst: server6}} {
		for id := range uint16(64) {
			build := func(ecn uint8) []byte {
				ip := ip
				ip.TOS = 0xb8 | ecn
				if ip.Src.Is4() {
					ip.ID = id << 10
				}
				s := builder.Spec{IP: ip, VLANs: []builder.VLAN{{ID: 9}}, TCP: &builder.TCP{SrcPort: 4000, DstPort: 80, Flags: packet.ACK}, PayloadLen: 3}
				return builder.MustBuild(&s).Data
			}
			got, want := marked(build(2)), build(3)
			if ip.Src.Is4() {
				if sum := sumOf(got[18:38]); sum != 0xffff {
					t.Fatalf("the header of %x sums up to %#x", got, sum)
				}
				copy(got[28:30], want[28:30]) // which the builder leaves out
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%x, want %x", got, want)
			}
		}
	}
}
