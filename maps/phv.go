package maps

// Need is what an algorithm asks the parser for: enum phv_need of bpf/include/phv.h.
type Need uint32

const (
	NeedTSOpt Need = 1 << iota
	NeedDNS
	NeedNTP
	NeedDecap
	NeedQName
	NeedRTP
)

// PHV is struct phv of bpf/include/phv.h, for tests that look at what the parser left.
type PHV struct {
	Now          uint64
	EpSrc, EpDst uint64
	Src, Dst     [16]byte
	SrcPort      uint16
	DstPort      uint16
	Valid        uint16
	VLAN         uint16
	Family       uint8
	Proto        uint8
	TCPFlags     uint8
	ICMPType     uint8
	Seq          uint32
	Ack          uint32
	Len          uint32
	Payload      uint32
	TSVal        uint32
	TSEcr        uint32
	AppID        uint64
	QName        uint64
	IPID         uint16
	Segs         uint16
	IfIndex      uint32
	Needs        uint32
	Coin         uint32
	Bank         uint8
	Next         uint8
	End          uint8
	Pass         uint8
	Verdict      uint8
	_            [3]byte
	Carry        [2]uint64
}
