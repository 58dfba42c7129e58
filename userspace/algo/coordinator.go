package algo

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Coordinator is an algorithm's part where many hosts come together, beyond putting their windows together, which Merge does. One goroutine
// calls it, and only with what the bus has admitted: who host is, its certificate says.
type Coordinator interface {
	// Heard takes what the algorithm says on a host; what is wrong with it is the host's fault and counted for it. now is ns since 1970.
	Heard(host string, now int64, data []byte) error
	// Gone is told of a host that is not expected any more.
	Gone(host string)
	// Tell is what is to be told to hosts, since it was asked last.
	Tell(now int64) []Told
	// Report is added to what the merged window says, and goes into the next with nothing but what lasts.
	Report(w report.Window) (Result, error)
}

// Told is a message to the algorithm on a host.
type Told struct {
	Host string
	Data []byte
}

// Spoken is an Instance that speaks with its Coordinator. Both calls come from the goroutine that owns the instance.
type Spoken interface {
	// Speak returns what is to be said since it was asked last.
	Speak(now int64) ([][]byte, error)
	// Hear takes what the coordinator says.
	Hear(data []byte) error
}

// Loss is a flow that has lost something, as far as a window says: packets or bytes, for all flows of a window the same.
type Loss struct {
	Source, Destination netip.Addr
	Lost                float64
}

// Losses is what a Descriptor tells a coordinator that looks for the links where packets are lost.
type Losses func(v Values, env Env, s *snapshot.Snapshot) ([]Loss, error)
