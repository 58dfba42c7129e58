// Package session runs algorithms over packets: it loads them through the loader, keeps the windows, feeds the
// oracles, and hands finished windows to whoever draws them. Live and replay differ only in where packets
// and time come from.
package session

import (
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Selected is an algorithm with its parameters. Where Config is not made yet, or for another setup, the session makes it.
type Selected = algo.Selected

// Config is what a run needs, live or replayed.
type Config struct {
	Algorithms []Selected
	Window     time.Duration // 0: one window, until the end
	Seed       uint64        // hash seed (and coin in a replay); 0: random when live, 1 in a replay
	Hash       algo.Hash     // "" is algo.HashFast
	Decap      bool
	Truth      bool          // replay only: run the oracles
	Epoch      func() uint64 // the number of the window that begins now, where hosts share windows; nil where they do not
	Merge      bool          // replay only: captures of several places, read side by side (capture.Sides)
	Snapshots  bool          // lines carry the snapshot that they were made of
	Proven     bool          // replay only: an earlier replay with another seed has proven the same programs (loader.Options.Proven)
	// Loading is told what is proven and loaded next, the how manieth of how many; nil: nobody asks.
	Loading func(what string, n, of int)
	// Emit receives every finished window, one Line an algorithm, in the order of Algorithms.
	Emit func(report.Line) error
	// Say takes what an algorithm says to its coordinator, and must not wait; nil: there is none. What is heard of it goes to Session.Hear.
	Publish func(Message)
	// Notice receives sentences for the operator (fallbacks, offload changes, interfaces that went away).
	Notice func(format string, args ...any)

	// Frames is shown every frame of a replay; it must not keep it. nil: nobody looks.
	Frames func(*packet.Frame)

	interfaces int  // of a live run; 0: nobody knows
	arrives    bool // of a live run: packets are seen on arrival, too
}
