// Package algo is the small interface that every algorithm implements, and the registry that flags, help,
// metrics, and the tests that sweep all algorithms are made from. An algorithm registers itself in init.
package algo

import (
	"cmp"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Descriptor is an algorithm as it is registered.
type Descriptor struct {
	Name    string // as in --algo NAME, bpf/NAME, p4/NAME, userspace/NAME
	Summary string // one line: the question it answers
	Paper   string // authors, title, venue and sections
	Doc     string // some paragraphs for `xdpmon algos NAME`, plain text
	Params  []Param
	Lost    map[string]string // what each kind of Result.Lost counts

	// Enforces: it may drop or mark packets, once it is configured to. It runs behind all that only measure. An instance that is
	// Acting says whether it was.
	Enforces bool

	// Spec returns the compiled object as bpf2go embedded it.
	Spec func() (*ebpf.CollectionSpec, error)
	// New checks the values and makes an instance; nothing is loaded. Errors name the value and the allowed range.
	New func(v Values, env Env) (Instance, error)
	// Layout is the version of what its snapshots hold; it goes up with every change of that.
	Layout uint32
	// Report makes the report of a snapshot. It is pure: it asks neither kernel nor clock and keeps nothing, and refuses words that do not
	// fit the values, since a snapshot may come from anywhere.
	Report func(v Values, env Env, s *snapshot.Snapshot) (Result, error)
	// Merge puts two snapshots together that have the same values; what it cannot it refuses with ErrMerge and the reason. nil when there
	// is no way.
	Merge func(v Values, env Env, a, b *snapshot.Snapshot) (*snapshot.Snapshot, error)
	// Coordinate makes the part that runs where many hosts come together; nil where Merge is all that is needed.
	Coordinate func(v Values, env Env) (Coordinator, error)
	// Losses names flows that have lost packets; nil where an algorithm does not see losses.
	Losses Losses
	// Findings makes of a window what diagnosis reads; nil where there is nothing to find.
	Findings finding.Rule
	// Lines makes a reader that puts JSON lines of several hosts together, where they hold all that it takes; nil where they do not.
	Lines func() LineMerger
	// Plan turns a load and a memory budget into parameters and an expected error; nil when there is nothing to plan.
	Plan func(args PlanArgs) (*report.Body, error)
	// PlanFrom changes what Plan is asked for where nothing is said, where that is nothing this algorithm has an answer to.
	PlanFrom PlanArgs
	// P4 returns the generated parts of the twin ("params", "tables"); nil when there is no twin.
	P4 func(v Values) (map[string]string, error)
	// P4Rules returns, as JSON, the entries of tables that change while the switch runs; nil when there are none.
	P4Rules func(v Values) ([]byte, error)
}

// Env is what an instance may know of where it runs.
type Env struct {
	Replay bool
	CPUs   int // possible CPUs
	// Interfaces is how many the instance measures; 0: not known yet.
	Interfaces int
	Seed       uint64
	CRC        bool // hashes are CRCs, as on the switch
	WindowNS   int64
	// Epoch is the number of the window that begins now, the same on all hosts that share it; nil: every host counts its own.
	Epoch  func() uint64
	Notice func(format string, args ...any) // tells the operator at once; may be nil
}

// Switch is the environment that twins are configured for: CRC hashes, one pipeline, the packets' own clock.
func Switch() Env { return Env{CRC: true, CPUs: 1, Replay: true} }

// Tell tells the operator something that cannot wait for the next report.
func (e Env) Tell(format string, args ...any) {
	if e.Notice != nil {
		e.Notice(format, args...)
	}
}

// Instance is one configured algorithm: first Configure, then (loaded) Bind, then Read again and again.
type Instance interface {
	// Configure writes constants (spec.Variables) and sizes (maps.SetEntries) before loading. It is pure:
	// the prover and `xdpmon pisa` call it too.
	Configure(spec *ebpf.CollectionSpec) error
	// Needs says what the parser must deliver beyond the fixed headers (maps.Need*).
	Needs() maps.Need
	// Bind receives the loaded maps and fills tables and initial values.
	Bind(set *maps.Set) error
	// Read takes what the closed bank holds, sets it back, and does what the algorithm does between windows. The report is made by the
	// descriptor's Report, from nothing else. The snapshot's words may be overwritten by the next Read.
	Read(w report.Window, bank int) (*snapshot.Snapshot, error)
}

// Result of a window.
type Result struct {
	Body report.Body
	Used uint64 // packets that the algorithm took as input
	// Segments: Used counts the segments that a packet stands for (GSO, GRO).
	Segments bool
	Lost     map[string]uint64 // everything that could be lost, by name
}

// Truthful is an Instance with an exact oracle, for --truth.
type Truthful interface {
	Oracle() Oracle
}

// Oracle computes the truth from the same packets, with unbounded memory and no sampling.
type Oracle interface {
	Packet(p *packet.Packet)
	// Window returns the truth of the window that ends, with the same names as the estimate, and starts the next.
	Window(w report.Window) report.Body
}

// Controller is an Instance that acts between windows (limits, thresholds); Tick is called every Interval.
type Controller interface {
	IntervalNS() int64
	Tick(now int64) error
}

// Beginning is a Controller that looks at the bank that packets write to: it is told which one that is when its first window begins, which may
// be either where others have been measuring before.
type Beginning interface {
	Begin(bank int)
}

// Closing is an Instance with counts that no bank holds: Closing is called right before a window's bank is closed, to note them.
type Closing interface {
	Closing() error
}

// Acting is an instance of an algorithm that enforces, if it is configured to.
type Acting interface {
	// Acts says whether it will decide over packets.
	Acts() bool
}

// Recirculating is an Instance that may send packets through a second pass.
type Recirculating interface {
	// RecirculationShare is the largest share of packets that may take a second pass (0.01).
	RecirculationShare() float64
}

// PlanArgs are the common arguments of `xdpmon plan`.
type PlanArgs struct {
	RatePerSecond float64
	MaxDelayNS    int64
	MemoryBytes   int64
	Values        Values
	Extra         map[string]string // other flags, by name
}

// PlanDefaults is what Plan is asked for where nothing is said.
func (d *Descriptor) PlanDefaults() PlanArgs {
	return PlanArgs{RatePerSecond: cmp.Or(d.PlanFrom.RatePerSecond, 1e5), MaxDelayNS: cmp.Or(d.PlanFrom.MaxDelayNS, 4e9),
		MemoryBytes: cmp.Or(d.PlanFrom.MemoryBytes, 1<<20)}
}
