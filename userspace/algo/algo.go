// Package algo is the small interface that every algorithm implements, and the registry from which flags, help,
// metrics and the tests of all algorithms are generated. An algorithm registers itself in init.
package algo

import (
	"cmp"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Descriptor is an algorithm as it is registered.
type Descriptor struct {
	Name    string // as in --algo NAME, bpf/NAME, p4/NAME, userspace/NAME
	Summary string // one line: the question it answers
	Paper   string // authors, title, venue and sections
	Doc     string // a few paragraphs for `xdpmon algos NAME`, plain text
	Params  []Param
	Twin    []TwinForm        // what its P4 twin has of them, where that is less; nil also without a twin
	Lost    map[string]string // what each kind of Result.Lost counts

	// Enforces: it may drop or mark packets if configured to. It runs after all algorithms that only measure. Its instance is an
	// Enforcer, which reports whether it was configured to.
	Enforces bool
	// Pairs: it matches packets with their answers, which pass the interface in the other direction.
	Pairs bool

	// Spec returns the compiled object as bpf2go embedded it.
	Spec func() (*ebpf.CollectionSpec, error)
	// Config makes the configuration: algo.Typed of the function that reads the parameters.
	Config Maker
	// Layout is the version of the contents of its snapshots; it increases with every change.
	Layout uint32
	// Findings derives the measures that diagnosis uses from a window; nil if there are none.
	Findings finding.Rule
	// Lines returns a merger of JSON lines of several hosts; nil if lines do not contain enough for that.
	Lines func() LineMerger
	// PlanFrom overrides the defaults of Plan's arguments that are not valid for this algorithm.
	PlanFrom PlanArgs
}

// Instance is a configured algorithm: Configure is called first, Bind after loading, then Read once per window.
type Instance interface {
	// Configure writes constants (spec.Variables) and sizes (maps.SetEntries) before loading. It is pure:
	// the prover and `xdpmon pisa` also call it.
	Configure(spec *ebpf.CollectionSpec) error
	// Needs are the fields that the parser must provide in addition to the fixed headers (maps.Need*).
	Needs() maps.Need
	// Bind receives the loaded maps and fills tables and initial values.
	Bind(set *maps.Set) error
	// Read reads the closed bank, resets it, and does the algorithm's work between windows. Config.Report computes the report from
	// the snapshot alone. The next Read may overwrite the snapshot's words.
	Read(w report.Window, bank int) (*snapshot.Snapshot, error)
}

// Result of a window.
type Result struct {
	Body report.Body
	Used uint64 // packets that the algorithm took as input
	// Segments: Used counts segments, of which a packet may contain several (GSO, GRO).
	Segments bool
	Lost     map[string]uint64 // everything that may be lost, by name
}

// PlanDefaults are the defaults of Plan's arguments.
func (d *Descriptor) PlanDefaults() PlanArgs {
	return PlanArgs{RatePerSecond: cmp.Or(d.PlanFrom.RatePerSecond, 1e5), MaxDelayNS: cmp.Or(d.PlanFrom.MaxDelayNS, 4e9),
		MemoryBytes: cmp.Or(d.PlanFrom.MemoryBytes, 1<<20)}
}
