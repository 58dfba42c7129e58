package parser

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// What only a real skb shows and no test run can make: a tag that the stack has taken out, headers outside of the
// linear part, segments.

// vnet is struct virtio_net_hdr: how a guest, and a packet socket, describe an skb.
type vnet struct {
	flags, gsoType     uint8
	headerLen, gsoSize uint16
	csumStart, csumOff uint16
}

const (
	vnetNeedsChecksum = 1
	vnetTCPv4         = 1
)

func (v vnet) bytes() []byte {
	b := []byte{v.flags, v.gsoType}
	for _, word := range []uint16{v.headerLen, v.gsoSize, v.csumStart, v.csumOff} {
		b = binary.NativeEndian.AppendUint16(b, word)
	}
	return b
}

// wire is two hosts with a packet socket at one of them, and a TC entry program where it sends or where it arrives.
type wire struct {
	*probe
	net    *netns.Topology
	socket int
}

func newWire(t *testing.T, where way) *wire {
	t.Helper()
	w := &wire{probe: newProbe(t, false, where)}
	var err error
	if w.net, err = netns.New(netns.Options{MTU: 9000}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.net.Close(); err != nil {
			t.Error(err)
		}
	})
	if where == egress {
		w.attach(t, w.net.A, ebpf.AttachTCXEgress, where)
	} else {
		w.attach(t, w.net.B, ebpf.AttachTCXIngress, where)
	}
	w.open(t)
	return w
}

func (w *wire) attach(t *testing.T, host *netns.Host, hook ebpf.AttachType, where way) {
	t.Helper()
	err := host.Run(func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: host.Index, Program: w.programs[where], Attach: hook})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
	if err != nil {
		testutil.Skip(t, "attach to TCX (Linux 6.6): %v", err)
	}
}

func (w *wire) open(t *testing.T) {
	t.Helper()
	err := w.net.A.Run(func() (err error) {
		w.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(w.socket) })
	if err := unix.SetsockoptInt(w.socket, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		t.Fatal(err)
	}
}

// send puts a frame on the wire and returns what the program saw, and how often it pulled headers.
func (w *wire) send(t *testing.T, f *packet.Frame, v vnet) (maps.PHV, uint64) {
	t.Helper()
	before := w.all(t)
	to := &unix.SockaddrLinklayer{Ifindex: w.net.A.Index, Protocol: 0x0300}
	if err := unix.Sendto(w.socket, append(v.bytes(), f.Data...), 0, to); err != nil {
		t.Fatalf("send a frame of %d bytes: %v", len(f.Data), err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for cpu, now := range w.all(t) {
			if now[chain.ChainChainCountCOUNT_BYTES] == before[cpu][chain.ChainChainCountCOUNT_BYTES] {
				continue
			}
			if err := w.phv.Lookup(uint32(0), &w.vectors); err != nil {
				t.Fatal(err)
			}
			const pulled = chain.ChainChainCountCOUNT_PULLED
			return w.vectors[cpu].PHV, now[pulled] - before[cpu][pulled]
		}
	}
	t.Fatal("the packet did not arrive within a minute")
	return maps.PHV{}, 0
}

func (w *wire) all(t *testing.T) []counters {
	t.Helper()
	banks := make([]counters, maps.PossibleCPUs())
	if err := w.counts.Lookup(uint32(w.inst.Control().Bank()), &banks); err != nil {
		t.Fatal(err)
	}
	return banks
}

func (w *wire) spec(payload int) *builder.Spec {
	return &builder.Spec{
		SrcMAC: w.net.A.MAC, DstMAC: w.net.B.MAC,
		IP:         builder.IP{Src: netip.MustParseAddr("10.77.0.1"), Dst: netip.MustParseAddr("10.77.0.2")},
		TCP:        &builder.TCP{SrcPort: 1, DstPort: 2, Seq: 3, Ack: 4, Flags: packet.ACK, Options: builder.Timestamps(5, 6)},
		PayloadLen: payload, Whole: true, Checksums: true, Time: 1,
	}
}

// A tag that the stack has moved from the packet into the skb is still the packet's tag, and was on the wire.
func TestTakenOutTag(t *testing.T) {
	w := newWire(t, tc)
	s := w.spec(100)
	s.VLANs = []builder.VLAN{{ID: 77, TPID: builder.EtherQinQ}, {ID: 78}}
	f := builder.MustBuild(s)
	got, _ := w.send(t, &f, vnet{})
	if packet.Valid(got.Valid)&packet.VLAN == 0 || got.Vlan != 77 {
		t.Errorf("tag %d (valid: %s), want the outer one, 77", got.Vlan, validNames(packet.Valid(got.Valid)))
	}
	if got.Len != uint32(f.Len) || got.Payload != 100 {
		t.Errorf("length %d, payload %d; want %d, 100", got.Len, got.Payload, f.Len)
	}
}

// Headers that are not in the linear part are fetched once; the packet is counted once.
func TestScatteredHeaders(t *testing.T) {
	w := newWire(t, tc)
	for linear := uint16(14); linear <= 66; linear += 4 {
		f := builder.MustBuild(w.spec(8000))
		got, pulled := w.send(t, &f, vnet{headerLen: linear})
		if valid := packet.Valid(got.Valid); valid&(packet.TCP|packet.TSOpt) != packet.TCP|packet.TSOpt || got.Tsval != 5 {
			t.Errorf("linear part of %d bytes: valid %s, timestamp %d", linear, validNames(valid), got.Tsval)
		}
		if got.Len != uint32(f.Len) || got.Payload != 8000 {
			t.Errorf("linear part of %d bytes: length %d, payload %d; want %d, 8000", linear, got.Len, got.Payload, f.Len)
		}
		if pulled > 1 || (linear <= 50 && pulled != 1) {
			t.Errorf("linear part of %d bytes: pulled %d times", linear, pulled)
		}
	}
}

// An aggregate counts as its segments, also when their number is not set yet: a guest, or this packet socket, only
// sets their size.
func TestSegments(t *testing.T) {
	w := newWire(t, egress)
	for _, c := range []struct{ payload, mss, segments int }{{1000, 1448, 1}, {1449, 1448, 2}, {14480, 1448, 10}, {60000, 1448, 42}} {
		f := builder.MustBuild(w.spec(c.payload))
		header := vnet{vnetNeedsChecksum, vnetTCPv4, 66, uint16(c.mss), 34, 16}
		got, _ := w.send(t, &f, header)
		wantLen := f.Len + (c.segments-1)*66
		aggregate := packet.Valid(got.Valid)&packet.Aggregate != 0
		if int(got.Segs) != c.segments || int(got.Len) != wantLen || aggregate != (c.segments > 1) {
			t.Errorf("%d bytes in segments of %d: %d segments, %d bytes on the wire, valid %s; want %d segments, %d bytes",
				c.payload, c.mss, got.Segs, got.Len, validNames(packet.Valid(got.Valid)), c.segments, wantLen)
		}
	}
}
