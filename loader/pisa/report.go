package pisa

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/machine"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// Report lists the memory of a collection, and the resources of a switch that it needs.
type Report struct {
	// PossibleCPUs is the number of copies of per-CPU arrays.
	PossibleCPUs int `json:"possible_cpus"`
	// Arrays are all maps: registers and tallies in the order of their stages, then the others.
	Arrays []Array `json:"arrays"`
	// OtherWrites are the maps that programs write other than registers and tallies.
	OtherWrites []OtherWrite `json:"other_writes"`
	// Targets are the switches that the report is for.
	Targets []Target `json:"targets"`
}

// Array is one map.
type Array struct {
	Algorithm   string        `json:"algorithm,omitempty"`
	Name        string        `json:"name"`
	Kind        declared.Kind `json:"kind"`
	Stage       *int          `json:"stage"` // null for maps without a stage
	WidthBits   int           `json:"width_bits"`
	Entries     uint64        `json:"entries"` // of one bank
	Banks       int           `json:"banks"`
	Bits        uint64        `json:"bits"`              // all banks, one CPU
	KernelBytes uint64        `json:"kernel_bytes"`      // values rounded up to 8 bytes, all CPUs; without the kernel's own
	Touches     int           `json:"touches,omitempty"` // of registers and tallies: most of one packet
	Sites       int           `json:"sites,omitempty"`   // source lines at which an access begins: exclusive tables of a switch
	Read        bool          `json:"read"`
	Write       bool          `json:"write"`
	Atomic      bool          `json:"atomic"`
	Programs    []string      `json:"programs"` // that read or write it
	Shared      bool          `json:"shared"`   // by all algorithms
}

// OtherWrite is memory outside of the register arrays.
type OtherWrite struct {
	Name     string        `json:"name"`
	Kind     declared.Kind `json:"kind"`
	Programs []string      `json:"programs"`
}

func newReport(e *declared.Collection, proofs []*machine.Machine) *Report {
	r := &Report{PossibleCPUs: possibleCPUs(), OtherWrites: []OtherWrite{}, Arrays: []Array{}}
	for i, a := range e.Arrays {
		row := newArray(a, r.PossibleCPUs)
		for _, m := range proofs {
			row.add(m, i, a.Staged())
		}
		r.Arrays = append(r.Arrays, row)
		if row.Write && !a.Staged() {
			r.OtherWrites = append(r.OtherWrites, OtherWrite{a.Name, a.Kind, row.Programs})
		}
	}
	slices.SortStableFunc(r.Arrays, compareArrays)
	r.Targets = fit(r.Arrays)
	return r
}

func possibleCPUs() int {
	if n, err := ebpf.PossibleCPU(); err == nil {
		return n
	}
	return runtime.NumCPU()
}

func newArray(a *declared.Array, cpus int) Array {
	value, entries := uint64(a.Width), uint64(a.Spec.MaxEntries)
	row := Array{
		Name: a.Name, Kind: a.Kind, WidthBits: int(value) * 8, Entries: entries / uint64(a.Banks), Banks: a.Banks,
		Bits: value * 8 * entries, KernelBytes: (value + 7) / 8 * 8 * entries, Shared: a.Shared, Programs: []string{},
	}
	if a.Spec.Type == ebpf.RingBuf {
		row.WidthBits, row.Bits, row.KernelBytes = 8, 8*entries, entries
	}
	if a.PerCPU() {
		row.KernelBytes *= uint64(cpus)
	}
	if a.Staged() {
		stage := a.Stage
		row.Stage = &stage
	}
	return row
}

// add counts what one program does with the array.
func (row *Array) add(m *machine.Machine, i int, staged bool) {
	u := m.Uses[i]
	if u == (machine.Use{}) {
		return
	}
	row.Programs = append(row.Programs, m.Prog.Name)
	row.Read = row.Read || u.Read
	row.Write = row.Write || u.Write
	row.Atomic = row.Atomic || u.Atomic
	if staged {
		row.Touches = 1 // the proof allows no more
		row.Sites = max(row.Sites, m.SiteCount(i))
	}
}

func compareArrays(a, b Array) int {
	switch {
	case a.Stage != nil && b.Stage != nil:
		return cmp.Compare(*a.Stage, *b.Stage)
	case a.Stage != nil:
		return -1
	case b.Stage != nil:
		return 1
	}
	return cmp.Compare(a.Kind, b.Kind)
}

// Name sets the algorithm that the report is about.
func (r *Report) Name(algorithm string) *Report {
	for i := range r.Arrays {
		if !r.Arrays[i].Shared {
			r.Arrays[i].Algorithm = algorithm
		}
	}
	return r
}

// misfits is rule 6: the collection must fit the largest target.
func (r *Report) misfits() []rule.Violation {
	largest := r.Targets[len(r.Targets)-1]
	if largest.Fits {
		return nil
	}
	return []rule.Violation{{Rule: 6, Code: rule.Fit, Map: largest.misfit, Insn: -1,
		Reason: fmt.Sprintf("it does not fit %s: %s", largest.Name, largest.Reason)}}
}
