// Package declared holds a collection's declarations of its maps: their kinds, stages and sizes, the packet header vector and the budget, and
// the roles of maps of each kind.
package declared

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// Collection is the part of a collection that all programs share.
type Collection struct {
	Arrays  []*Array
	Numbers map[string]int // of arrays, by name
	Stages  [MaxStages]Set // the arrays of each stage
	Budgets Set
	Staged  Set // registers and tallies
	Secrets Set // what only userspace may read back, and stale memory
	Answers Set // rings and the budget, which packets share
	Chances Set // generators
	Vector  vector
	Banked  bool      // an array has two banks
	Types   *btf.Spec // nil: unknown

	Budget     budgetWords
	Deferred   bool // a replay that delays second passes (recirc.h)
	CoinSeeded bool // a replay: the entry program sets phv->coin for each packet (coin.h)
}

// Read classifies the maps of a collection; violations are the errors in their declarations.
func Read(spec *ebpf.CollectionSpec) (*Collection, []rule.Violation, error) {
	e := &Collection{Types: spec.Types, Numbers: make(map[string]int), Vector: vector{Array: -1, Pass: -1, Next: -1, Bank: -1}}
	names := make([]string, 0, len(spec.Maps))
	for name, m := range spec.Maps {
		if m == nil {
			return nil, nil, fmt.Errorf("%w: map %q has no specification", rule.ErrMalformed, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	var broken []rule.Violation
	next := 0
	for _, name := range names {
		a, bad := classify(name, spec.Maps[name])
		a.Data = contents(spec, name)
		e.Banked = e.Banked || a.Banks > 1
		list, wrong := interleaved(a)
		broken = append(append(broken, bad...), wrong...)
		var together Set
		for _, a := range list {
			if a.followed() {
				if next == maxArrays {
					return nil, nil, fmt.Errorf("more than %d arrays, rings and generators: %w", maxArrays, rule.ErrTooComplex)
				}
				a.Bit = bit(next)
				together = together.Or(a.Bit)
				next++
			}
		}
		e.Numbers[name] = len(e.Arrays)
		for _, a := range list {
			a.Group = together
			broken = append(broken, e.name(a, spec)...)
			e.Arrays = append(e.Arrays, a)
			e.group(a)
		}
	}
	if at, ok := e.Numbers[VectorName]; ok {
		if wrong := e.Vector.read(int32(at), e.Arrays[at].Spec.Value); wrong != "" {
			broken = append(broken, rule.Violation{Rule: 1, Code: rule.Unlisted, Map: VectorName, Insn: -1, Reason: wrong})
		}
	}
	if at, ok := e.Numbers["recirc_budget"]; ok {
		e.Budget = readBudget(e.Arrays[at].Spec.Value)
	}
	e.CoinSeeded, e.Deferred = isSet(spec, "coin_seeded"), isSet(spec, "recirc_deferred")
	e.Secrets = e.Secrets.Or(Stale)
	e.Chances = e.Chances.Or(Chance)
	return e, broken, nil
}

// isSet reports whether a constant exists and is not 0.
func isSet(spec *ebpf.CollectionSpec, name string) bool {
	v, ok := spec.Variables[name]
	return ok && slices.ContainsFunc(v.Value, func(b byte) bool { return b != 0 })
}

// name gives an array its number. Two arrays of one name would be one in the report.
func (e *Collection) name(a *Array, spec *ebpf.CollectionSpec) []rule.Violation {
	if a.Beside == 1 && a.Name == a.Map {
		return nil
	}
	if _, known := e.Numbers[a.Name]; known || spec.Maps[a.Name] != nil || a.Name == "" {
		return []rule.Violation{{Rule: 1, Code: rule.Unlisted, Map: a.Map, Insn: -1, Reason: fmt.Sprintf("the name %q of one of its arrays is not its own", a.Name)}}
	}
	e.Numbers[a.Name] = len(e.Arrays)
	return nil
}

func (e *Collection) group(a *Array) {
	if a.Staged() {
		e.Stages[a.Stage] = e.Stages[a.Stage].Or(a.Bit)
		e.Staged = e.Staged.Or(a.Bit)
	}
	switch a.Kind {
	case Budget:
		e.Budgets = e.Budgets.Or(a.Bit)
		e.Answers = e.Answers.Or(a.Bit)
	case Ring:
		e.Answers = e.Answers.Or(a.Bit)
	case Random:
		e.Chances = e.Chances.Or(a.Bit)
	}
	if a.secret() {
		e.Secrets = e.Secrets.Or(a.Bit)
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

// Names lists arrays for a message.
func (e *Collection) Names(s Set) string {
	var out []string
	for _, a := range e.Arrays {
		if a.Bit.Meets(s) {
			out = append(out, a.Name)
		}
	}
	return strings.Join(out, ", ")
}

// OfStage names the arrays of a stage that were touched.
func (e *Collection) OfStage(stage int, touched Set) string {
	if stage < 0 {
		return "an array"
	}
	return e.Names(e.Stages[stage].And(touched))
}
