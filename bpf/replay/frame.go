package replay

// Link is the start of a frame.
type Link uint8

const (
	LinkEthernet Link = iota
	LinkRaw           // an IP header is first (tun, raw captures)
)

// Direction is the hook that saw a packet, from the host's point of view. A tap sees everything as ingress.
type Direction uint8

const (
	Ingress Direction = iota
	Egress
)

// Frame is a packet as it was captured or built. Data is only valid until its producer's next call.
type Frame struct {
	Time      int64  // ns; never 0 in a replay
	Data      []byte // captured bytes, from the link header on
	Len       int    // bytes on the wire, Len >= len(Data)
	Link      Link
	Direction Direction
	Interface uint32 // 0 unless the capture names it
	Enqueued  int64  // ns: when the packet entered the queue that it leaves at Time; 0 if not known
	Queue     uint16 // the queue's number
}
