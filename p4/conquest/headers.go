package conquest

import (
	"encoding/binary"
	"fmt"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// headers that the twin makes: bridged in front of every packet, a report in front of a culprit's copy.
var headers = []twin.Emit{{Header: "bridged_h", Want: bridged}, {Header: "report_h", Want: reported}}

// frontReport is the first byte of a report.
const frontReport = 1

func bridged(s *twin.Seen) twin.Fields {
	window := uint64(1) << s.Constant("conquest_shift")
	f := twin.Fields{"front": 0, "session": s.Session(), "pad_0": 0, "pad_1": 0, "counted": 0, "discard": twin.Flag(s.Unclaimed), "row_0": 0, "row_1": 0,
		"arrival": uint64(uint32(s.Arrived)), "first": uint64(uint32(s.Arrived+window/2-1) &^ uint32(window-1))}
	if s.Given && s.Packet.Has(packet.IP) {
		f["counted"], f["row_0"], f["row_1"] = 1, row(&s.Packet, 0), row(&s.Packet, 1)
	}
	return f
}

// row is a hash of the packet's flow: addresses, ports, protocol and family in the order of bpf/include/key.h.
func row(p *packet.Packet, n int) uint64 {
	src, dst := twin.Words(p.Src.AsSlice()), twin.Words(p.Dst.AsSlice())
	ports, tag := uint32(p.SrcPort)<<16|uint32(p.DstPort), uint32(p.Proto)<<24
	if p.Src.Is4() {
		return uint64(twin.Hash(n, src[0], dst[0], ports, tag|1))
	}
	return uint64(twin.Hash(n, src[2], src[3], ports, tag|3, dst[2], dst[3], src[0], src[1], dst[0], dst[1]))
}

// reported is the report of the culprit that the host accuses with this packet.
func reported(s *twin.Seen) twin.Fields {
	for _, record := range s.Records {
		var e bpf.ConquestConquestEvent
		if _, err := binary.Decode(record, binary.NativeEndian, &e); err == nil && e.Kind == uint32(bpf.ConquestConquestEventKindEVENT_CULPRIT) {
			return twin.Fields{"front": frontReport, "flow": row(&s.Packet, 1), "delay": e.Delay, "limit": limit(s, &e)}
		}
	}
	return nil
}

// limit is alpha of the totals of all windows that were read, each rounded down, without the packet itself.
func limit(s *twin.Seen, e *bpf.ConquestConquestEvent) (sum uint64) {
	epoch := uint32(e.Time >> s.Constant("conquest_shift"))
	for j := range s.Constant("conquest_snapshots") {
		word := s.At(fmt.Sprintf("conquest_t%d", j), 0)
		age, n := epoch-uint32(word>>32), uint64(uint32(word))
		if age > e.Reach {
			continue
		}
		if age == 0 {
			n--
		}
		sum += n * s.Constant("conquest_alpha") >> 20
	}
	return sum
}
