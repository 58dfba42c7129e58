package heavy

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
)

// MaxWays is WAYS of bpf/include/ways.h.
const MaxWays = 4

// Admission is who may take an entry: enum ways_admission_kind.
type Admission uint32

// The admissions.
const (
	Exact Admission = iota
	Pow2
	NineEighths
	Deterministic
)

// AdmissionNames in the order of Admission.
var AdmissionNames = []string{"exact", "pow2", "9/8", "deterministic"}

// ParseAdmission reads a name.
func ParseAdmission(name string) Admission { return Admission(slices.Index(AdmissionNames, name)) }

// Ways are the arrays of bpf/include/ways.h in an object.
type Ways struct {
	Prefix    string // of the arrays' names: "precision"
	Spec      Spec
	Words     int // of the longest key
	Count     int // ways
	Entries   int // of all ways together, in one bank
	Admission Admission
	Initial   uint64
	Subtract  bool // estimates are without the initial value
	arrays    map[string]*maps.Array
}

func (w *Ways) name(part string) string { return w.Prefix + "_" + part }

// PerWay is the number of entries of one way.
func (w *Ways) PerWay() int { return w.Entries / w.Count }

// Configure writes constants and sizes.
func (w *Ways) Configure(spec *ebpf.CollectionSpec) error {
	constants := map[string]any{
		"key_fields": uint32(w.Spec.Fields), "key_family": uint32(w.Spec.Family), "key_words": uint32(w.Words), "key_tagged": w.Spec.tagged(),
		"ways_count": uint32(w.Count), "ways_entries": uint32(w.PerWay()), "ways_admission": uint32(w.Admission), "ways_initial": w.Initial,
	}
	for name, v := range constants {
		if err := maps.SetConstant(spec, name, v); err != nil {
			return err
		}
	}
	return w.size(spec)
}

func (w *Ways) size(spec *ebpf.CollectionSpec) error {
	sizes := map[string]int{"t": w.entriesIf(w.Admission == Deterministic)}
	for i := range MaxWays {
		sizes[fmt.Sprintf("c%d", i)] = w.entriesIf(i < w.Count)
		for j := range KeyWords {
			sizes[fmt.Sprintf("k%d%d", i, j)] = w.entriesIf(i < w.Count && j < w.Words)
		}
	}
	for part, n := range sizes {
		if err := maps.SetEntries(spec, w.name(part), uint32(n)); err != nil {
			return err
		}
	}
	return nil
}

func (w *Ways) entriesIf(used bool) int {
	if used {
		return w.PerWay()
	}
	return 1
}

// Bind finds the arrays that are in use.
func (w *Ways) Bind(set *maps.Set) error {
	w.arrays = map[string]*maps.Array{}
	for i := range w.Count {
		parts := []string{fmt.Sprintf("c%d", i)}
		for j := range w.Words {
			parts = append(parts, fmt.Sprintf("k%d%d", i, j))
		}
		for _, part := range parts {
			a, err := set.Array(w.name(part))
			if err != nil {
				return err
			}
			w.arrays[part] = a
		}
	}
	if w.Admission != Deterministic {
		return nil
	}
	a, err := set.Array(w.name("t"))
	w.arrays["t"] = a
	return err
}

// Table is what the ways of all CPUs held at the end of a window.
type Table struct {
	Counts   map[Key]float64 // estimates, CPUs and ways added up
	Records  int             // entries that hold a key
	Entries  int             // of the CPUs that counted anything
	Minimum  float64         // what an unmonitored packet competes with: mean of the smallest of d counters, over the CPUs
	Twice    int             // keys in two ways of one CPU: second passes that overtook each other
	Admitted float64         // largest counter
}

// Read reads a closed bank and resets it.
func (w *Ways) Read(bank int) (*Table, error) {
	words := map[string][][]uint64{}
	for part, a := range w.arrays {
		copies, err := a.ReadResetPerCPU(bank)
		if err != nil {
			return nil, fmt.Errorf("read ways: %w", err)
		}
		words[part] = copies
	}
	t := &Table{Counts: map[Key]float64{}}
	active := 0
	for cpu := range maps.PossibleCPUs() {
		if w.addCPU(t, cpu, words) {
			active++
		}
	}
	if active > 0 {
		t.Minimum /= float64(active)
	}
	return t, nil
}

// addCPU adds one CPU's records; false when it has none.
func (w *Ways) addCPU(t *Table, cpu int, words map[string][][]uint64) bool {
	seen := map[Key]bool{}
	counters := make([][]uint64, w.Count)
	for i := range w.Count {
		counters[i] = words[fmt.Sprintf("c%d", i)][cpu]
		for e, stored := range counters[i] {
			key := w.key(i, e, cpu, words)
			if key == (Key{}) {
				continue
			}
			value := w.value(stored)
			t.Counts[key] += value
			t.Admitted = max(t.Admitted, value)
			t.Records++
			if seen[key] {
				t.Twice++
			}
			seen[key] = true
		}
	}
	if len(seen) == 0 {
		return false
	}
	t.Entries += w.Count * w.PerWay()
	t.Minimum += w.meanMinimum(counters)
	return true
}

func (w *Ways) value(stored uint64) float64 {
	if w.Subtract {
		return float64(stored)
	}
	return float64(stored + w.Initial)
}

func (w *Ways) key(way, entry, cpu int, words map[string][][]uint64) (k Key) {
	for j := range w.Words {
		k[j] = words[fmt.Sprintf("k%d%d", way, j)][cpu][entry]
	}
	return w.Spec.Clean(k)
}

// meanMinimum is the mean of the smallest of one random counter of every way: each value weighs the share of others that are
// not below it.
func (w *Ways) meanMinimum(counters [][]uint64) float64 {
	survivors := func(v uint64) float64 { // share of ways' draws that are all above v
		p := 1.0
		for _, c := range counters {
			i, _ := slices.BinarySearch(c, v+1)
			p *= 1 - float64(i)/float64(len(c))
		}
		return p
	}
	var all []uint64
	for _, c := range counters {
		slices.Sort(c)
		all = append(all, c...)
	}
	slices.Sort(all)
	mean, above, last := 0.0, 1.0, uint64(0)
	for _, v := range slices.Compact(all) {
		mean += float64(v-last) * above
		above, last = survivors(v), v
	}
	return mean + w.value(0)
}
