package parser

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// gsoSegs is the offset of gso_segs in struct __sk_buff; gso_size is 12 bytes after it.
const gsoSegs = 164

// A buffer of many segments is as long as they are on the wire: each has the headers again.
func TestLengthOfAnAggregate(t *testing.T) {
	testutil.NeedRoot(t)
	inst, err := loader.Load(nil, loader.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	entry, err := inst.Entry(loader.EntryConfig{Kind: loader.TC})
	if err != nil {
		t.Fatal(err)
	}
	defer entry.Close()
	const payload, headers = 2800, 14 + 20 + 20
	frame := builder.MustBuild(&builder.Spec{IP: builder.IP{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2")},
		TCP: &builder.TCP{SrcPort: 1, DstPort: 2, Flags: packet.ACK}, Payload: make([]byte, payload)})
	for segments, want := range map[uint32]uint64{0: headers + payload, 2: 2*headers + payload, 7: 7*headers + payload} {
		context := make([]byte, 192)
		binary.NativeEndian.PutUint32(context[gsoSegs:], segments)
		if segments > 0 {
			binary.NativeEndian.PutUint32(context[gsoSegs+12:], payload/segments)
		}
		if _, err := entry.Run(&ebpf.RunOptions{Data: frame.Data, Context: context}); err != nil {
			t.Fatal(err)
		}
		bank, err := inst.Control().Flip()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := inst.Counts(bank); err != nil || n.Bytes != want {
			t.Errorf("%d segments: %d bytes, want %d, %v", segments, n.Bytes, want, err)
		}
	}
}
