// Package session runs algorithms over packets: it loads them through the loader, manages the windows, feeds the oracles, and
// emits finished windows. Live and replay differ only in the source of packets and time.
package session

import (
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Selected is an algorithm with its parameters. The session creates its Config if it is missing, or made for another setup.
type Selected = algo.Selected

// Config is the configuration of a run, live or replayed.
type Config struct {
	Algorithms []Selected
	Window     time.Duration // of algorithms that set none; 0: one window, until the end
	Seed       uint64        // hash seed (and coin in a replay); 0: random when live, 1 in a replay
	Hash       algo.Hash     // "" is algo.HashFast
	Decap      bool
	Truth      bool // replay only: run the oracles
	// Epoch returns the number of the window of a length (ns) that starts now, if hosts share windows; else nil.
	Epoch     func(window int64) uint64
	Merge     bool // replay only: captures of several places, read side by side (capture.Sides)
	Snapshots bool // lines include the snapshot of their window
	Proven    bool // replay only: an earlier replay with another seed has proven the same programs (loader.Options.Proven)
	// Loading is called before each program is verified and loaded, with its index and the total; may be nil.
	Loading func(what string, n, of int)
	// Emit receives every finished window, one Line an algorithm, in the order of Algorithms.
	Emit func(report.Line) error
	// Publish sends an algorithm's message to its coordinator, and must not block; nil: there is none. Messages of the coordinator are
	// passed to Session.Receive.
	Publish func(Message)
	// Notice receives sentences for the operator (fallbacks, offload changes, interfaces that disappeared).
	Notice func(format string, args ...any)

	// Frames is called with every frame of a replay, and must not retain it; may be nil.
	Frames func(*packet.Frame)

	interfaces int  // number of a live run's interfaces; 0: unknown
	arrives    bool // in a live run: packets are also measured on ingress
}
