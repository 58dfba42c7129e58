package maps

import "github.com/xdpmon/xdpmon/bpf/chain"

// Need is what an algorithm asks the parser for: enum phv_need of bpf/include/phv.h.
type Need uint32

const (
	NeedTSOpt Need = 1 << iota
	NeedDNS
	NeedNTP
	NeedBegin
	NeedQName
	NeedRTP
	NeedQueue
)

// PHV is struct phv of bpf/include/phv.h, generated from it: for tests that look at what the parser left.
type PHV = chain.ChainPhv
