package algo

import (
	"errors"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Coordinator is an algorithm's part where many hosts come together, beyond putting their windows together, which Merge does. One goroutine
// calls it, and only with what the bus has admitted: who a host is, its certificate says. A host is an agent's name, or name/interface where
// each interface has an instance of its own.
type Coordinator interface {
	// Began is told of an instance that is new, or has missed something that it was told: it wants to be told everything that counts.
	Began(host string)
	// Heard takes what the algorithm says on a host; what is wrong with it is the host's fault and counted for it: as ErrUntimely, or as malformed.
	Heard(s Said) error
	// Gone is told of a host that is not expected any more.
	Gone(host string)
	// Tell is what is to be told to hosts, since it was asked last (it is asked 20 times a second). What gets lost on its way ends in Began.
	Tell(now int64) []Told
	// Report is added to what the merged window says, and goes into the next with nothing but what lasts. Of a host whose window is in
	// the merged one, everything that it said until the window's end was heard before.
	Report(w report.Window) (Result, error)
}

// ErrUntimely is of messages of a time that is not now.
var ErrUntimely = errors.New("untimely message")

// Said is a message of an instance. Messages come in the order in which they were said, each once.
type Said struct {
	Host   string
	Time   int64  // when it was said, ns since 1970 on the coordinator's clock; Now where the host's clock is not known
	Now    int64  // when it came; much later than Time where the network was cut
	Missed uint64 // messages of the instance before this one that are lost
	Data   []byte
}

// Told is a message to the algorithm on a host.
type Told struct {
	Host string
	Data []byte
}

// Bounds of what is said.
const (
	SpeakNS    = 100_000_000
	MaxMessage = 32 << 10 // bytes of a message
	MaxSpoken  = 64       // messages of a call of Speak
	MaxKept    = 4 << 20  // bytes of what a Coordinator keeps
)

// Loss is a flow that has lost something, as far as a window says: packets or bytes, for all flows of a window the same.
type Loss struct {
	Source, Destination netip.Addr
	Lost                float64
}
