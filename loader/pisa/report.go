package pisa

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"
)

// Report says what a collection keeps in memory, and what that takes of a switch.
type Report struct {
	// PossibleCPUs is what per-CPU arrays are multiplied with.
	PossibleCPUs int `json:"possible_cpus"`
	// Arrays are all maps: registers and tallies in the order of their stages, then the others.
	Arrays []Array `json:"arrays"`
	// OtherWrites is whatever programs write besides registers and tallies.
	OtherWrites []OtherWrite `json:"other_writes"`
	// Targets are the switches that were asked.
	Targets []Target `json:"targets"`
}

// Array is one map.
type Array struct {
	Algorithm   string   `json:"algorithm,omitempty"`
	Name        string   `json:"name"`
	Kind        Kind     `json:"kind"`
	Stage       *int     `json:"stage"` // null for what has no stage
	WidthBits   int      `json:"width_bits"`
	Entries     uint64   `json:"entries"` // of one bank
	Banks       int      `json:"banks"`
	Bits        uint64   `json:"bits"`              // all banks, one CPU
	KernelBytes uint64   `json:"kernel_bytes"`      // values rounded up to 8 bytes, all CPUs; without the kernel's own
	Touches     int      `json:"touches,omitempty"` // of registers and tallies: most of one packet
	Sites       int      `json:"sites,omitempty"`   // source lines at which an access begins: exclusive tables of a switch
	Read        bool     `json:"read"`
	Write       bool     `json:"write"`
	Atomic      bool     `json:"atomic"`
	Programs    []string `json:"programs"` // that read or write it
	Shared      bool     `json:"shared"`   // by all algorithms
}

// OtherWrite is memory outside of the register arrays.
type OtherWrite struct {
	Name     string   `json:"name"`
	Kind     Kind     `json:"kind"`
	Programs []string `json:"programs"`
}

func newReport(e *env, proofs []*machine) *Report {
	r := &Report{PossibleCPUs: possibleCPUs(), OtherWrites: []OtherWrite{}, Arrays: []Array{}}
	for i, a := range e.arrays {
		row := newArray(a, r.PossibleCPUs)
		for _, m := range proofs {
			row.add(m, i, a.staged())
		}
		r.Arrays = append(r.Arrays, row)
		if row.Write && !a.staged() {
			r.OtherWrites = append(r.OtherWrites, OtherWrite{a.name, a.kind, row.Programs})
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

func newArray(a *array, cpus int) Array {
	value, entries := uint64(a.spec.ValueSize), uint64(a.spec.MaxEntries)
	row := Array{
		Name: a.name, Kind: a.kind, WidthBits: int(value) * 8, Entries: entries / uint64(a.banks), Banks: a.banks,
		Bits: value * 8 * entries, KernelBytes: (value + 7) / 8 * 8 * entries, Shared: a.shared, Programs: []string{},
	}
	if a.spec.Type == ebpf.RingBuf {
		row.WidthBits, row.Bits, row.KernelBytes = 8, 8*entries, entries
	}
	if a.perCPU() {
		row.KernelBytes *= uint64(cpus)
	}
	if a.staged() {
		stage := a.stage
		row.Stage = &stage
	}
	return row
}

// add counts what one program does with the array.
func (row *Array) add(m *machine, i int, staged bool) {
	u := m.uses[i]
	if u == (use{}) {
		return
	}
	row.Programs = append(row.Programs, m.prog.name)
	row.Read = row.Read || u.read
	row.Write = row.Write || u.write
	row.Atomic = row.Atomic || u.atomic
	if staged {
		row.Touches = 1 // the proof allows no more
		row.Sites = max(row.Sites, m.siteCount(i))
	}
}

// siteCount is the number of source lines at which a packet's access to an array begins.
func (m *machine) siteCount(array int) int {
	places := make(map[string]bool)
	for _, pc := range m.sites[int32(array)] {
		places[m.prog.where(int(pc))] = true
	}
	return len(places)
}

func compareArrays(a, b Array) int {
	switch {
	case a.Stage != nil && b.Stage != nil:
		return cmp.Or(cmp.Compare(*a.Stage, *b.Stage), cmp.Compare(a.Algorithm, b.Algorithm))
	case a.Stage != nil:
		return -1
	case b.Stage != nil:
		return 1
	}
	return cmp.Compare(a.Kind, b.Kind)
}

// Name sets the algorithm that the report is about, for a merged one.
func (r *Report) Name(algorithm string) *Report {
	for i := range r.Arrays {
		if !r.Arrays[i].Shared {
			r.Arrays[i].Algorithm = algorithm
		}
	}
	return r
}

// Merge is the report of several algorithms that run one after the other. On a switch they lie side by side:
// an algorithm whose stages are taken moves back as a whole, in its own order. Maps that algorithms share
// are counted once.
func Merge(reports ...*Report) *Report {
	out := &Report{PossibleCPUs: possibleCPUs(), OtherWrites: []OtherWrite{}, Arrays: []Array{}}
	for _, r := range reports {
		out.PossibleCPUs = r.PossibleCPUs
		for _, a := range r.Arrays {
			out.addArray(a)
		}
		for _, w := range r.OtherWrites {
			out.addWrite(w)
		}
	}
	slices.SortStableFunc(out.Arrays, compareArrays)
	out.Targets = fit(out.Arrays)
	return out
}

func (r *Report) addArray(a Array) {
	i := slices.IndexFunc(r.Arrays, func(o Array) bool { return a.Shared && o.Shared && o.Name == a.Name })
	if i < 0 {
		a.Programs = slices.Clone(a.Programs)
		r.Arrays = append(r.Arrays, a)
		return
	}
	row := &r.Arrays[i]
	row.Programs = union(row.Programs, a.Programs)
	row.Read, row.Write, row.Atomic = row.Read || a.Read, row.Write || a.Write, row.Atomic || a.Atomic
}

func (r *Report) addWrite(w OtherWrite) {
	i := slices.IndexFunc(r.OtherWrites, func(o OtherWrite) bool { return o.Name == w.Name && o.Kind == w.Kind })
	if i < 0 {
		w.Programs = slices.Clone(w.Programs)
		r.OtherWrites = append(r.OtherWrites, w)
		return
	}
	r.OtherWrites[i].Programs = union(r.OtherWrites[i].Programs, w.Programs)
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// misfits is rule 6: the largest target must take it.
func (r *Report) misfits() []Violation {
	largest := r.Targets[len(r.Targets)-1]
	if largest.Fits {
		return nil
	}
	return []Violation{{Rule: 6, Code: Fit, Map: largest.misfit, Insn: -1,
		Reason: fmt.Sprintf("it does not fit %s: %s", largest.Name, largest.Reason)}}
}
