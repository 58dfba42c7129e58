package declared

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// Kind is the role of a map under the memory rules, by the map's tags or else by its type.
type Kind string

// The kinds of maps.
const (
	Register Kind = "register"      // state of the data plane; all six rules
	Tally    Kind = "tally"         // state that userspace alone reads back; all six rules
	Counters Kind = "counters"      // statistics of the program: only added to
	Budget   Kind = "budget"        // passes left for recirculation: counted down, branched on
	Random   Kind = "random"        // state of a random number generator: it takes nothing from packets
	Scratch  Kind = "scratch"       // one element for each CPU, valid during one packet
	Table    Kind = "table"         // configuration: read-only
	Prefix   Kind = "prefix"        // configuration: longest prefix match as a trie of words; read-only
	Slots    Kind = "chain"         // the programs of the chain
	Recirc   Kind = "recirculation" // the programs of the second pass
	Ring     Kind = "ring"          // reports to userspace
	Constant Kind = "constant"      // .rodata
	Untagged Kind = "untagged"      // anything else: read-only
)

var tagKinds = map[string]Kind{
	"pisa:register": Register, "pisa:tally": Tally, "pisa:counters": Counters, "pisa:budget": Budget,
	"pisa:random": Random, "pisa:scratch": Scratch, "pisa:table": Table, "pisa:prefix": Prefix, "pisa:chain": Slots, "pisa:recirculation": Recirc,
}

const (
	tagStage    = "pisa:stage="
	tagBanked   = "pisa:banked"
	tagLowPass  = "pisa:lpf" // the switch's low-pass filter: it may multiply
	tagShared   = "xdpmon:shared"
	MaxStages   = 20 // Tofino 2
	elementBits = 64
	VectorName  = "phv_scratch"
	ControlName = "chain_control"
)

// The SRAM of a Tofino, 1 and 2 alike (loader/pisa has the source of the figures).
const (
	BlockBits   = 1024 * 128 // of an SRAM block
	ArrayBlocks = 35         // of data in one array; one more is the hardware's spare
	StageMapRAM = 48         // of all arrays of a stage, spare blocks included
)

// Array is one map of a collection as the proof sees it, or one of several register arrays in a map, whose element then has one word of each. Its number is
// its place in Collection.Arrays; those of one map follow each other.
type Array struct {
	Name    string
	Map     string
	Beside  int // arrays of its map
	Width   int // bytes
	Kind    Kind
	Stage   int // of staged arrays: the declared one, forced into the range that exists
	Last    int // ... and the latest one that a pointer to this array leads to: of the first array of a map that of all of them
	Banks   int
	LowPass bool
	Shared  bool
	Spec    *ebpf.MapSpec
	Data    []byte // contents of a constant
	Bit     Set    // of register, tally, counters and budget; 0 of the others
	Group   Set    // the bits of all arrays of its map
}

// Staged reports whether stages and single accesses are proven for it.
func (a *Array) Staged() bool { return a.Kind == Register || a.Kind == Tally }

// followed reports whether the proof tracks values that were read from it.
func (a *Array) followed() bool {
	switch a.Kind {
	case Register, Tally, Counters, Budget, Random, Ring:
		return true
	}
	return false
}

// Own reports whether the packet does not choose the element.
func (a *Array) Own() bool { return a.Kind == Budget || a.Kind == Random || a.Kind == Scratch }

// secret reports whether userspace alone may read it back.
func (a *Array) secret() bool { return a.Kind == Tally || a.Kind == Counters }

// PerCPU reports whether every CPU has values of its own.
func (a *Array) PerCPU() bool {
	t := a.Spec.Type
	return t == ebpf.PerCPUArray || t == ebpf.PerCPUHash || t == ebpf.LRUCPUHash
}

// Indexed reports whether every index below MaxEntries has an element.
func (a *Array) Indexed() bool {
	return a.Spec.Type == ebpf.Array || a.Spec.Type == ebpf.PerCPUArray
}

func classify(name string, spec *ebpf.MapSpec) (*Array, []rule.Violation) {
	a := &Array{Name: name, Map: name, Width: int(spec.ValueSize), Beside: 1, Kind: kindOf(name, spec), Stage: -1, Banks: 1, Spec: spec}
	a.LowPass = slices.Contains(spec.Tags, tagLowPass)
	a.Shared = slices.Contains(spec.Tags, tagShared)
	if slices.Contains(spec.Tags, tagBanked) {
		a.Banks = 2
	}
	var broken []rule.Violation
	add := func(which int, code rule.Code, format string, args ...any) {
		broken = append(broken, rule.Violation{Rule: which, Code: code, Map: name, Insn: -1, Reason: fmt.Sprintf(format, args...)})
	}
	switch a.Kind {
	case Register, Tally:
		a.Stage = 0
		if !staged(namesOf(spec)) {
			a.Stage = stageOf(spec.Tags, add)
		}
		a.Last = a.Stage
		if bits := int(spec.ValueSize) * 8; bits > elementBits && namesOf(spec) == nil {
			add(3, rule.ElementWidth, "an element has %d bits", bits)
		}
	}
	if wrong := a.oversized(); wrong != "" {
		add(1, rule.FlowState, "%s", wrong)
	} else if wrong := a.unlisted(); wrong != "" {
		add(1, rule.Unlisted, "%s", wrong)
	}
	return a, broken
}

func kindOf(name string, spec *ebpf.MapSpec) Kind {
	for _, tag := range spec.Tags {
		if kind, ok := tagKinds[tag]; ok {
			return kind
		}
	}
	switch {
	case strings.HasPrefix(name, ".rodata"):
		return Constant
	case spec.Type == ebpf.RingBuf || spec.Type == ebpf.PerfEventArray:
		return Ring
	}
	return Untagged
}

// stageOf is the declared stage, forced into the range that exists.
func stageOf(tags []string, add func(int, rule.Code, string, ...any)) int {
	return min(max(readStage(tags, add), 0), MaxStages-1)
}

// readStage is the declared stage, or -1.
func readStage(tags []string, add func(int, rule.Code, string, ...any)) int {
	out := -1
	for _, tag := range tags {
		text, ok := strings.CutPrefix(tag, tagStage)
		if !ok {
			continue
		}
		stage, err := strconv.Atoi(text)
		switch {
		case err != nil || stage < 0:
			add(1, rule.StageMissing, "%q is not a stage", text)
			return out
		case out >= 0:
			add(1, rule.StageMissing, "it is declared in stage %d and in stage %d", out, stage)
			return out
		case stage >= MaxStages:
			add(6, rule.Fit, "stage %d does not exist: the largest target has stages 0 to %d", stage, MaxStages-1)
		}
		out = stage
	}
	if out < 0 {
		add(1, rule.StageMissing, "it is declared in no stage")
	}
	return out
}
