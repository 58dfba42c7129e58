package pisa

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
)

// Kind says what a map is under the memory rules. It comes from the map's tags, else from its type.
type Kind string

// The kinds of maps.
const (
	Register Kind = "register"      // state of the data plane; all six rules
	Tally    Kind = "tally"         // state that userspace alone reads back; all six rules
	Counters Kind = "counters"      // statistics of the program: only added to
	Budget   Kind = "budget"        // passes left for recirculation: counted down, branched on
	Random   Kind = "random"        // state of a random number generator: it takes nothing from packets
	Scratch  Kind = "scratch"       // one element a CPU that lives as long as a packet
	Table    Kind = "table"         // configuration: read-only
	Slots    Kind = "chain"         // the programs of the chain
	Recirc   Kind = "recirculation" // the programs of the second pass
	Ring     Kind = "ring"          // reports to userspace
	Constant Kind = "constant"      // .rodata
	Untagged Kind = "untagged"      // anything else: read-only
)

var tagKinds = map[string]Kind{
	"pisa:register": Register, "pisa:tally": Tally, "pisa:counters": Counters, "pisa:budget": Budget,
	"pisa:random": Random, "pisa:scratch": Scratch, "pisa:table": Table, "pisa:chain": Slots, "pisa:recirculation": Recirc,
}

const (
	tagStage    = "pisa:stage="
	tagBanked   = "pisa:banked"
	tagLowPass  = "pisa:lpf" // the switch's low-pass filter: it may multiply
	tagShared   = "xdpmon:shared"
	maxStages   = 20 // Tofino 2
	elementBits = 64
	vectorName  = "phv_scratch"
	controlName = "chain_control"
)

// array is one map of a collection as the proof sees it. Its number is its place in env.maps.
type array struct {
	name    string
	kind    Kind
	stage   int // of staged arrays: the declared one, forced into the range that exists
	banks   int
	lowPass bool
	shared  bool
	spec    *ebpf.MapSpec
	data    []byte // contents of a constant
	bit     set    // of register, tally, counters and budget; 0 of the others
}

// staged says whether stages and single accesses are proven for it.
func (a *array) staged() bool { return a.kind == Register || a.kind == Tally }

// followed says whether the proof follows what was read from it.
func (a *array) followed() bool {
	switch a.kind {
	case Register, Tally, Counters, Budget, Random, Ring:
		return true
	}
	return false
}

// own says whether the packet does not choose the element.
func (a *array) own() bool { return a.kind == Budget || a.kind == Random || a.kind == Scratch }

// secret says whether userspace alone may read it back.
func (a *array) secret() bool { return a.kind == Tally || a.kind == Counters }

func (a *array) perCPU() bool {
	t := a.spec.Type
	return t == ebpf.PerCPUArray || t == ebpf.PerCPUHash || t == ebpf.LRUCPUHash
}

// indexed says whether every index below MaxEntries has an element.
func (a *array) indexed() bool {
	return a.spec.Type == ebpf.Array || a.spec.Type == ebpf.PerCPUArray
}

func classify(name string, spec *ebpf.MapSpec) (*array, []Violation) {
	a := &array{name: name, kind: kindOf(name, spec), stage: -1, banks: 1, spec: spec}
	a.lowPass = slices.Contains(spec.Tags, tagLowPass)
	a.shared = slices.Contains(spec.Tags, tagShared)
	if slices.Contains(spec.Tags, tagBanked) {
		a.banks = 2
	}
	var broken []Violation
	add := func(rule int, code Code, format string, args ...any) {
		broken = append(broken, Violation{Rule: rule, Code: code, Map: name, Insn: -1, Reason: fmt.Sprintf(format, args...)})
	}
	switch a.kind {
	case Register, Tally:
		a.stage = min(max(readStage(spec.Tags, add), 0), maxStages-1)
		if bits := int(spec.ValueSize) * 8; bits > elementBits {
			add(3, ElementWidth, "an element has %d bits", bits)
		}
	}
	if wrong := a.oversized(); wrong != "" {
		add(1, FlowState, "%s", wrong)
	} else if wrong := a.unlisted(); wrong != "" {
		add(1, Unlisted, "%s", wrong)
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

// readStage is the declared stage, or -1.
func readStage(tags []string, add func(int, Code, string, ...any)) int {
	out := -1
	for _, tag := range tags {
		text, ok := strings.CutPrefix(tag, tagStage)
		if !ok {
			continue
		}
		stage, err := strconv.Atoi(text)
		switch {
		case err != nil || stage < 0:
			add(1, StageMissing, "%q is not a stage", text)
			return out
		case out >= 0:
			add(1, StageMissing, "it is declared in stage %d and in stage %d", out, stage)
			return out
		case stage >= maxStages:
			add(6, Fit, "stage %d does not exist: the largest target has stages 0 to %d", stage, maxStages-1)
		}
		out = stage
	}
	if out < 0 {
		add(1, StageMissing, "it is declared in no stage")
	}
	return out
}
