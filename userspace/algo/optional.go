package algo

import (
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Optional interfaces of an algorithm, in addition to Config and Instance. tests/sweep compares this table with the code.
//
//	interface            of           implemented by
//	Merger               Config       ahab, beaucoup, carpe, conquest, fridge, hhh, lean, precision, reorder, rtt-array
//	MergeChecker         Config       beaucoup
//	Planner              Config       ahab, beaucoup, carpe, conquest, fridge, hhh, lean, precision, reorder
//	Twin                 Config       ahab, beaucoup, carpe, conquest, fridge, hhh, lean, precision, reorder
//	TwinRules            Config       ahab, beaucoup, lean
//	LossReporter         Config       lean
//	CoordinatorProvider  Config       carpe
//	OracleProvider       Instance     ahab, beaucoup, carpe, conquest, fridge, hhh, lean, precision, reorder, rtt-array, waits
//	Controller           Instance     ahab, beaucoup, carpe, conquest, lean, reorder, waits
//	ReplayController     Instance     carpe, conquest, lean, reorder, waits
//	Messenger            Instance     carpe
//	Enforcer             Instance     conquest
//	Steerer              Instance     ahab, conquest
//	WindowOpener         Instance     lean
//	WindowCloser         Instance     ahab
//	Recirculator         Instance     ahab, hhh, precision, reorder
//	RecirculationDelayer Instance     hhh, precision
//	Checkpointer         Coordinator  carpe

// Merger is a Config that merges two snapshots taken with it. What cannot be merged is refused with ErrMerge and the
// reason; ahab refuses all, since a limit belongs to one host.
type Merger interface {
	Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error)
}

// MergeChecker is a Merger that knows in advance that it will refuse all snapshots, because its parameters lack what merging needs.
type MergeChecker interface {
	Merger
	CheckMerge() error
}

// Planner is a Config that turns a load and a memory budget into parameters and an expected error.
type Planner interface {
	Plan(args PlanArgs) (*report.Body, error)
}

// PlanArgs are the common arguments of `xdpmon plan`.
type PlanArgs struct {
	RatePerSecond float64
	MaxDelayNS    int64
	MemoryBytes   int64
	Extra         map[string]string // other flags, by name
}

// Twin is a Config for Switch that generates parts of the P4 twin ("params", "tables").
type Twin interface {
	P4() (map[string]string, error)
}

// TwinRules is a Twin with table entries that change at run time, as JSON.
type TwinRules interface {
	P4Rules() ([]byte, error)
}

// LossReporter is a Config that names flows with losses, for the coordinator's search for lossy links.
type LossReporter interface {
	Losses(s *snapshot.Snapshot) ([]Loss, error)
}

// CoordinatorProvider is a Config with a part that runs on the coordinator, in addition to Merge.
type CoordinatorProvider interface {
	Coordinate(env Env) (Coordinator, error)
}

// OracleProvider is an Instance with an exact oracle, for --truth.
type OracleProvider interface {
	Oracle() Oracle
}

// Oracle computes the truth from the same packets, with unbounded memory and no sampling.
type Oracle interface {
	Packet(p *packet.Packet)
	// Window returns the truth of the window that ends, with the names of the estimate, and starts the next.
	Window(w report.Window) report.Body
}

// Controller is an Instance with periodic work (limits, thresholds); Tick is called every IntervalNS.
type Controller interface {
	IntervalNS() int64
	Tick(now int64) error
}

// Rester is a Controller whose ticks may be omitted while no packet arrives: they only drain a ring and adapt to the load. Rests is called once,
// before the first tick. After the last packet two more ticks follow, and one when the next packet has arrived.
type Rester interface {
	Controller
	Rests() bool
}

// ReplayController is a Controller that is also ticked in a replay, by packet time. A tick of a replay takes some ten milliseconds, so
// that the instance chooses the times, instead of every IntervalNS.
type ReplayController interface {
	Controller
	// NextTick is the time of the first tick after now (ns), in a window that started at start; math.MaxInt64 for none.
	NextTick(start, now int64) int64
}

// Messenger is an Instance that exchanges messages with its Coordinator. The goroutine that owns the instance makes all calls. Without
// a coordinator there are none: an instance must not wait for them.
type Messenger interface {
	// Send returns the messages since the last call; it is called every MessageNS, and after each Read. now is the packets' clock.
	// Messages beyond MaxMessages a call, or longer than MaxMessage bytes, are dropped and counted.
	Send(now int64) ([][]byte, error)
	// Receive handles a message of the coordinator. An error is reported to the operator; the instance continues.
	Receive(data []byte) error
}

// Enforcer is an Instance of an algorithm that may drop or mark packets, if it is configured to.
type Enforcer interface {
	// Acts reports whether it is configured to drop or mark packets.
	Acts() bool
}

// Steerer is an Instance that may change how packets leave the host.
type Steerer interface {
	Steers() Steering
}

// Steering is loader.Steering: a mark, a class, or a departure time; a packet has one of them.
type Steering struct {
	By        string // the setting that enables it, such as ahab.act=pace; "": disabled
	Delays    bool   // packets get departure times
	Aggregate uint64 // bytes: larger aggregates of segments may be dropped in part; 0: none
}

// WindowOpener is a Controller that reads the bank that packets write to: Begin is given that bank when its first window starts, which may be
// either one if other algorithms measured before.
type WindowOpener interface {
	Begin(bank int)
}

// WindowCloser is an Instance with counts outside of the banks: Closing is called right before a window's bank is closed, to read
// them.
type WindowCloser interface {
	Closing() error
}

// Recirculator is an Instance that may send packets through a second pass.
type Recirculator interface {
	// RecirculationShare is the largest share of packets that may take a second pass (0.01).
	RecirculationShare() float64
}

// RecirculationDelayer is a Recirculator that delays its second passes in a replay, to study the cost of a long pipeline.
type RecirculationDelayer interface {
	// RecirculationDelay is the number of packets that arrive before a second pass.
	RecirculationDelay() int
}

// Checkpointer is a Coordinator that resumes from saved state after a restart, or when another coordinator takes over.
type Checkpointer interface {
	// Checkpoint returns the state for Restore, with everything received until now and nothing received later. At most MaxCheckpoint bytes.
	Checkpoint() ([]byte, error)
	// Restore restores it, before any message is received.
	Restore(data []byte) error
}
