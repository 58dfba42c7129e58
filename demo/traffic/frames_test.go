package traffic

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// The demonstration's frames equal those of the tests' builder for the same packet, byte by byte.
func TestFramesAreThoseOfTheBuilder(t *testing.T) {
	w := &Wire{Source: [6]byte{2, 0, 0, 0, 0, 1}, Hop: [6]byte{2, 0, 0, 0, 0, 2}}
	from, to := netip.MustParseAddrPort("10.20.1.14:40000"), netip.MustParseAddrPort("10.80.1.11:443")
	ip := builder.IP{Src: from.Addr(), Dst: to.Addr()}
	for _, c := range []struct {
		name string
		got  []byte
		want builder.Spec
	}{
		{"SYN", w.SYN(from, to, 0xfedcba98), builder.Spec{IP: ip, TCP: &builder.TCP{SrcPort: from.Port(), DstPort: to.Port(), Seq: 0xfedcba98, Flags: packet.SYN, Window: 1024, Options: []byte{2, 4, 5, 180}}}},
		{"datagram", w.Datagram(from, to, 101), builder.Spec{IP: ip, UDP: &builder.UDP{SrcPort: from.Port(), DstPort: to.Port()}, PayloadLen: 101}},
	} {
		c.want.SrcMAC, c.want.DstMAC, c.want.Checksums, c.want.Whole = w.Source, w.Hop, true, true
		if want := builder.MustBuild(&c.want).Data; !bytes.Equal(c.got, want) {
			t.Errorf("%s:\n%x, want\n%x", c.name, c.got, want)
		}
	}
	for name, pair := range map[string][2][]byte{
		"DNS question": {dns(7, false), builder.DNS(7, false)}, "DNS answer": {dns(7, true), builder.DNS(7, true)},
		"NTP request": {ntp(9, false), builder.NTP(9, false)}, "NTP response": {ntp(9, true), builder.NTP(9, true)},
	} {
		if !bytes.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %x, want %x", name, pair[0], pair[1])
		}
	}
}
