package maps

import "github.com/xdpmon/xdpmon/bpf/chain"

// Need is the data that an algorithm requests from the parser: enum phv_need of bpf/include/phv.h.
type Need uint32

const (
	NeedTSOpt Need = 1 << iota
	NeedDNS
	NeedNTP
	NeedBegin
	NeedQName
	NeedRTP
	NeedQueue
	NeedScale
)

// PHV is struct phv of bpf/include/phv.h, generated from it: for tests of the parser's results.
type PHV = chain.ChainPhv
