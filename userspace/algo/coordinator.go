package algo

import (
	"errors"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Coordinator is an algorithm's part on the coordinator, in addition to Merge. One goroutine calls it, with messages that the bus has
// admitted: a host is authenticated by its certificate. A host is an agent's name, or name/interface where each interface has an instance of
// its own.
type Coordinator interface {
	// Joined is called for an instance that is new, or has missed a message: it needs the whole state.
	Joined(host string)
	// Receive takes a message of an instance; an error is counted for the host: as ErrUntimely, or as malformed.
	Receive(m Incoming) error
	// Left is called for a host that is no longer expected.
	Left(host string)
	// Send returns the messages to hosts since the last call (20 times a second). A lost message ends in Joined.
	Send(now int64) []Outgoing
	// Report is added to the merged window; afterwards only state that spans windows stays. Of a host whose window is in the
	// merged one, every message until the window's end was received before.
	Report(w report.Window) (Result, error)
}

// ErrUntimely is returned for messages that are too old, or in the future.
var ErrUntimely = errors.New("untimely message")

// Incoming is a message of an instance. Messages are delivered in the order in which they were sent, each once.
type Incoming struct {
	Host   string
	Time   int64  // when it was sent, ns since 1970 on the coordinator's clock; equal to Now if the host's clock offset is unknown
	Now    int64  // when it arrived; much later than Time where the network was cut
	Missed uint64 // messages of the instance before this one that are lost
	Data   []byte
}

// Outgoing is a message to the algorithm on a host.
type Outgoing struct {
	Host string
	Data []byte
}

// Bounds of messages.
const (
	MessageNS     = 100_000_000
	MaxMessage    = 32 << 10 // bytes of a message
	MaxMessages   = 64       // messages of a call of Send
	MaxCheckpoint = 4 << 20  // bytes of a checkpoint
)

// Loss is a flow with losses in a window, in packets or bytes, the same unit for all flows of a window.
type Loss struct {
	Source, Destination netip.Addr
	Lost                float64
}
