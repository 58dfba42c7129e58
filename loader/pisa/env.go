package pisa

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// env is what all programs of a collection share.
type env struct {
	arrays  []*array
	numbers map[string]int // of arrays, by name
	stages  [maxStages]set // the arrays of each stage
	budgets set
	staged  set // registers and tallies
	secrets set // what only userspace may read back, and stale memory
	answers set // rings and the budget, which packets share
	chances set // generators
	vector  vector

	budget     budgetWords
	deferred   bool // a replay that holds second passes back (recirc.h)
	coinSeeded bool // a replay: the entry program sets phv->coin for each packet (coin.h)
}

// vector is the layout of the packet header vector, as far as rule 5 needs it.
type vector struct {
	array      int32 // -1: the collection has none
	pass, next int
	bank       int
	carry      word
	writable   []word // what the entry program sets for each packet, so that nothing survives in it
	coin       word
	now        word
}

type word struct{ off, size int }

func (w word) covers(off, size int) bool {
	return w.size > 0 && off >= w.off && off+size <= w.off+w.size
}

func (w word) overlaps(off, size int) bool { return off < w.off+w.size && w.off < off+size }

func newEnv(spec *ebpf.CollectionSpec) (*env, []Violation, error) {
	e := &env{numbers: make(map[string]int), vector: vector{array: -1, pass: -1, next: -1, bank: -1}}
	names := make([]string, 0, len(spec.Maps))
	for name, m := range spec.Maps {
		if m == nil {
			return nil, nil, fmt.Errorf("%w: map %q has no specification", ErrMalformed, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	var broken []Violation
	next := 0
	for _, name := range names {
		a, bad := classify(name, spec.Maps[name])
		broken = append(broken, bad...)
		if a.followed() {
			if next == maxArrays {
				return nil, nil, fmt.Errorf("more than %d arrays, rings and generators: %w", maxArrays, ErrTooComplex)
			}
			a.bit = 1 << next
			next++
		}
		a.data = contents(spec, name)
		e.numbers[name] = len(e.arrays)
		e.arrays = append(e.arrays, a)
		e.group(a)
	}
	if at, ok := e.numbers[vectorName]; ok {
		if wrong := e.vector.read(int32(at), e.arrays[at].spec.Value); wrong != "" {
			broken = append(broken, Violation{Rule: 1, Code: Unlisted, Map: vectorName, Insn: -1, Reason: wrong})
		}
	}
	if at, ok := e.numbers["recirc_budget"]; ok {
		e.budget = readBudget(e.arrays[at].spec.Value)
	}
	e.coinSeeded, e.deferred = isSet(spec, "coin_seeded"), isSet(spec, "recirc_deferred")
	e.secrets |= stale
	e.chances |= chance
	return e, broken, nil
}

// isSet says whether a constant is there and not 0.
func isSet(spec *ebpf.CollectionSpec, name string) bool {
	v, ok := spec.Variables[name]
	return ok && slices.ContainsFunc(v.Value, func(b byte) bool { return b != 0 })
}

func (e *env) group(a *array) {
	if a.staged() {
		e.stages[a.stage] |= a.bit
		e.staged |= a.bit
	}
	switch a.kind {
	case Budget:
		e.budgets |= a.bit
		e.answers |= a.bit
	case Ring:
		e.answers |= a.bit
	case Random:
		e.chances |= a.bit
	}
	if a.secret() {
		e.secrets |= a.bit
	}
}

// contents are the bytes of a constant section as they will be loaded: with the values that variables were set to.
func contents(spec *ebpf.CollectionSpec, name string) []byte {
	if !strings.HasPrefix(name, ".rodata") || len(spec.Maps[name].Contents) != 1 {
		return nil
	}
	data, ok := spec.Maps[name].Contents[0].Value.([]byte)
	if !ok {
		return nil
	}
	data = slices.Clone(data)
	for _, v := range spec.Variables {
		if v.SectionName == name && int(v.Offset) <= len(data) {
			copy(data[v.Offset:], v.Value)
		}
	}
	return data
}

// vectorSizes are the words of the vector that the rules know, and their bytes: in another layout they would not be those that
// the entry program sets.
var vectorSizes = map[string]int{
	"pass": 1, "next": 1, "bank": 1, "carry": 16, "coin": 4, "now": 8, "ep_src": 8, "ep_dst": 8, "verdict": 1,
	"steer": 4, "steering": 1,
}

// read finds the words of the vector in its BTF; it returns what is wrong with them.
func (v *vector) read(array int32, t btf.Type) (wrong string) {
	s, ok := btf.As[*btf.Struct](t)
	if !ok {
		return "the vector has no type information"
	}
	v.array = array
	for _, member := range s.Members {
		size, known := vectorSizes[member.Name]
		if !known {
			continue
		}
		if got, err := btf.Sizeof(member.Type); err != nil || got != size {
			wrong = fmt.Sprintf("the vector's %s has %d bytes, not the %d of phv.h", member.Name, got, size)
			size = min(size, got)
		}
		v.add(member.Name, word{int(member.Offset.Bytes()), size})
	}
	return wrong
}

func (v *vector) add(name string, w word) {
	switch name {
	case "pass":
		v.pass = w.off
	case "next":
		v.next = w.off
	case "bank":
		v.bank = w.off
		return
	case "coin":
		v.coin = w
		return
	case "carry":
		v.carry = w
	case "now":
		v.now = w
	}
	v.writable = append(v.writable, w)
}

// names lists arrays for a message.
func (e *env) names(s set) string {
	var out []string
	for _, a := range e.arrays {
		if a.bit&s != 0 {
			out = append(out, a.name)
		}
	}
	return strings.Join(out, ", ")
}

// ofStage names the arrays of a stage that were touched.
func (e *env) ofStage(stage int, touched set) string {
	if stage < 0 {
		return "an array"
	}
	return e.names(e.stages[stage] & touched)
}
