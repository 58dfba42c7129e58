package parser

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Messages of DNS and NTP are payload: a driver may leave them after the linear part of a buffer.

func messages() map[string]*builder.Spec {
	to := func(port uint16, msg []byte) *builder.Spec {
		return &builder.Spec{
			IP:  builder.IP{Src: netip.MustParseAddr("10.77.0.1"), Dst: netip.MustParseAddr("10.77.0.2")},
			UDP: &builder.UDP{SrcPort: 5000, DstPort: port}, Payload: append(msg, make([]byte, 6000-len(msg))...), Whole: true,
			Checksums: true, Time: 1,
		}
	}
	return map[string]*builder.Spec{
		"dns":       to(53, builder.DNS(0xabcd, false)),
		"ntp":       to(123, builder.NTP(0x0102030405060708, false)),
		"rtp":       to(5004, []byte{0x80, 0x60, 0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 2}),
		"long name": to(53, question(1, label(63)+label(63)+label(63)+label(61)+"\x00")),
	}
}

func checkMessage(t *testing.T, name string, got *sight, f *packet.Frame) {
	t.Helper()
	var want packet.Packet
	packet.Decode(f, packet.DecodeOptions{}, &want)
	if want.Has(packet.RTP) { // its application id is of an earlier packet
		if packet.Valid(got.Valid) != want.Valid || got.Seq != want.Seq {
			t.Errorf("%s: valid %s, sequence number %#x", name, validNames(packet.Valid(got.Valid)), got.Seq)
		}
		return
	}
	if packet.Valid(got.Valid)&(packet.AppRequest|packet.HasQName) != want.Valid&(packet.AppRequest|packet.HasQName) || got.AppId != want.AppID {
		t.Errorf("%s: valid %s, application id %#x; want %s, %#x", name, validNames(packet.Valid(got.Valid)), got.AppId,
			validNames(want.Valid), want.AppID)
	}
	if want.Has(packet.HasQName) && got.Qname != packet.HashName(probeSeed, want.QName) {
		t.Errorf("%s: another name", name)
	}
}

// A socket buffer: what the program asks for is fetched.
func TestScatteredMessages(t *testing.T) {
	w := newWire(t, tc)
	for name, s := range messages() {
		s.SrcMAC, s.DstMAC = w.net.A.MAC, w.net.B.MAC
		for _, linear := range []uint16{14, 38, 42, 43, 53, 54, 60, 89, 90, 200} {
			f := builder.MustBuild(s)
			phv, _ := w.send(t, &f, vnet{headerLen: linear})
			checkMessage(t, name, &sight{PHV: phv}, &f)
		}
	}
}

// An XDP buffer whose first fragment is short. Kernels before 6.18 cannot make one in a test run.
func TestFragmentedMessages(t *testing.T) {
	p := newProbe(t, false, live)
	for name, s := range messages() {
		f := builder.MustBuild(s)
		for _, linear := range []int{42, 43, 53, 54, 60, 89, 90, 200} {
			var ctx bytes.Buffer
			_ = binary.Write(&ctx, binary.NativeEndian, [6]uint32{0, uint32(linear), 0, 0, 0, 0})
			_, err := p.programs[live].Run(&ebpf.RunOptions{Data: f.Data, Context: ctx.Bytes()})
			if errors.Is(err, unix.EINVAL) {
				testutil.Skip(t, "run with a linear part of %d bytes (Linux 6.18): %v", linear, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := p.phv.Lookup(uint32(0), &p.vectors); err != nil {
				t.Fatal(err)
			}
			checkMessage(t, name, &sight{PHV: p.vectors[p.cpu].PHV}, &f)
		}
	}
}
