package heavy

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/maps"
)

// MaxWays is WAYS of bpf/include/ways.h.
const MaxWays = 4

// Admission decides whether a packet takes an entry: enum ways_admission_kind.
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
	Subtract  bool // estimates exclude the initial value
	Noted     bool // entries record the value with which they were taken
	Adapts    bool // Adapt changes the initial value by window, starting with Initial
	arrays    map[string]*maps.Array
	starts    *maps.Array // initial values of both banks
	contest   contest     // of the bank that was read last
	initials  [2]uint64
}

func (w *Ways) name(part string) string { return w.Prefix + "_" + part }

// PerWay is the number of entries of one way.
func (w *Ways) PerWay() int { return w.Entries / w.Count }

// Configure writes constants and sizes.
func (w *Ways) Configure(spec *ebpf.CollectionSpec) error {
	constants := map[constant.Name]any{
		constant.KeyFields: uint32(w.Spec.Fields), constant.KeyFamily: uint32(w.Spec.Family), constant.KeyWords: uint32(w.Words), constant.KeyTagged: w.Spec.tagged(),
		constant.WaysCount: uint32(w.Count), constant.WaysEntries: uint32(w.PerWay()), constant.WaysAdmission: uint32(w.Admission), constant.WaysInitial: w.Initial,
		constant.WaysNoted: w.Noted, constant.WaysAdapts: w.Adapts,
	}
	if err := maps.SetConstants(spec, constants); err != nil {
		return err
	}
	if err := w.configureStarts(spec); err != nil {
		return err
	}
	return w.size(spec)
}

func (w *Ways) size(spec *ebpf.CollectionSpec) error {
	for i := range MaxWays {
		if err := maps.SetWords(spec, w.name(row(i)), w.rowWords()); err != nil {
			return err
		}
		if err := maps.SetEntries(spec, w.name(row(i)), uint32(w.entriesIf(i < w.Count))); err != nil {
			return err
		}
	}
	return maps.SetEntries(spec, w.name(turns), uint32(w.entriesIf(w.Admission == Deterministic)))
}

// turns is the array of deterministic admission.
const turns = "t"

// row is the map with the records of a way.
func row(way int) string { return fmt.Sprintf("w%d", way) }

// rowWords are the words of a record: its counter and its key.
func (w *Ways) rowWords() int { return 1 + w.Words }

func (w *Ways) entriesIf(used bool) int {
	if used {
		return w.PerWay()
	}
	return 1
}

// Bind finds the arrays that are in use.
func (w *Ways) Bind(set *maps.Set) error {
	if err := w.bindStarts(set); err != nil {
		return err
	}
	w.arrays = map[string]*maps.Array{}
	for i := range w.Count {
		a, err := set.Array(w.name(row(i)))
		if err != nil {
			return err
		}
		w.arrays[row(i)] = a
	}
	if w.Admission != Deterministic {
		return nil
	}
	a, err := set.Array(w.name(turns))
	w.arrays[turns] = a
	return err
}

// Table is the content of the ways of all CPUs at the end of a window.
type Table struct {
	Counts   map[Key]float64 // estimates, CPUs and ways added up
	Guesses  map[Key]Guess   // their uncertain parts; empty if entries do not record admissions
	Absent   map[Key]float64 // merged tables: maximum count of the key on hosts without an entry for it
	Records  int             // entries that hold a key
	Entries  int             // of the CPUs that counted anything
	Minimum  float64         // counter that an unmonitored packet competes with: mean of the smallest of d counters, over the CPUs
	Unseen   float64         // a flow of this size has an entry with 95 % probability
	Twice    int             // keys in two ways of one CPU: second passes that overtook each other
	Admitted float64         // largest counter
	Initial  uint64          // value of an empty entry in this window
}

// Read reads a closed bank and resets it.
func (w *Ways) Read(bank int) (*Table, error) {
	if w.atRest(bank) {
		return w.table(bank, nil), nil
	}
	words := map[string][][]uint64{}
	for part, a := range w.arrays {
		copies, err := a.ReadResetPerCPU(bank)
		if err != nil {
			return nil, fmt.Errorf("read ways: %w", err)
		}
		words[part] = copies
	}
	return w.table(bank, words), nil
}

func (w *Ways) atRest(bank int) bool {
	for _, a := range w.arrays {
		if !a.AtRest(bank) {
			return false
		}
	}
	return true
}

// table are the rows of a bank's ways, by CPU.
func (w *Ways) table(bank int, words map[string][][]uint64) *Table {
	t := &Table{Counts: map[Key]float64{}, Guesses: map[Key]Guess{}, Initial: w.initialOf(bank)}
	w.contest = contest{start: float64(t.Initial)}
	for cpu := range maps.PossibleCPUs() {
		w.contest.rivals = append(w.contest.rivals, w.addCPU(t, cpu, words)...)
	}
	w.contest.sort()
	t.compete(w.contest.rivals)
	if w.Subtract {
		t.Minimum = max(0, t.Minimum-float64(t.Initial))
	}
	return t
}

// addCPU adds one CPU's records and returns the counters that newcomers compete with there; none if it has no record.
func (w *Ways) addCPU(t *Table, cpu int, words map[string][][]uint64) []rival {
	if words == nil {
		return nil
	}
	seen := map[Key]bool{}
	counters := make([][]uint64, w.Count)
	for i := range w.Count {
		counters[i] = make([]uint64, w.PerWay())
		rows := words[row(i)][cpu]
		for e := range counters[i] {
			record := rows[e*w.rowWords() : (e+1)*w.rowWords()]
			stored, note := w.split(record[0])
			counters[i][e] = stored
			key := w.key(record[1:])
			if key == (Key{}) {
				continue
			}
			value := w.value(stored, t.Initial)
			t.Counts[key] += value
			t.Admitted = max(t.Admitted, value)
			if w.Noted {
				t.Guesses[key] = t.Guesses[key].plus(note)
			}
			t.Records++
			if seen[key] {
				t.Twice++
			}
			seen[key] = true
		}
	}
	if len(seen) == 0 {
		return nil
	}
	t.Entries += w.Count * w.PerWay()
	w.contest.entries += w.PerWay()
	for _, c := range counters {
		for _, stored := range c {
			w.contest.values = append(w.contest.values, float64(stored+t.Initial))
		}
	}
	return rivalsOf(counters, float64(t.Initial))
}

func (w *Ways) value(stored, initial uint64) float64 {
	if w.Subtract {
		return float64(stored)
	}
	return float64(stored + initial)
}

func (w *Ways) key(words []uint64) (k Key) {
	copy(k[:], words)
	if k == (Key{}) {
		return k
	}
	return w.Spec.Clean(k)
}
