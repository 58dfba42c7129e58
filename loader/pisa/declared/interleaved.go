package declared

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// tagArrays names register arrays that are interleaved in one map. The array's own stage may follow its name, as in "a@1,b@3"; else the map's
// stage is that of all.
const tagArrays = "pisa:arrays="

// interleaved returns the arrays that a map's tag names: each has one word of the map's element. Other maps are one array.
func interleaved(a *Array) ([]*Array, []rule.Violation) {
	names := namesOf(a.Spec)
	if names == nil {
		return []*Array{a}, nil
	}
	refuse := func(which int, code rule.Code, format string, args ...any) ([]*Array, []rule.Violation) {
		return []*Array{a}, []rule.Violation{{Rule: which, Code: code, Map: a.Name, Insn: -1, Reason: fmt.Sprintf(format, args...)}}
	}
	switch {
	case a.Kind != Register || a.Spec.Type != ebpf.Array && a.Spec.Type != ebpf.PerCPUArray:
		return refuse(1, rule.Unlisted, "a %s in a map of type %s is one array, not several side by side", a.Kind, a.Spec.Type)
	case a.Width != len(names)*elementBits/8:
		return refuse(3, rule.ElementWidth, "an element has %d bits and not %d for each of %d arrays", a.Width*8, elementBits, len(names))
	}
	var list []*Array
	var broken []rule.Violation
	for _, name := range names {
		one := *a
		one.Name, one.Width, one.Beside = name, elementBits/8, len(names)
		if own, stage, apart := strings.Cut(name, atStage); apart {
			one.Name = own
			one.Stage = stageOf([]string{tagStage + stage}, func(which int, code rule.Code, format string, args ...any) {
				broken = append(broken, rule.Violation{Rule: which, Code: code, Map: own, Insn: -1, Reason: fmt.Sprintf(format, args...)})
			})
		}
		one.Last = one.Stage
		list = append(list, &one)
	}
	for _, one := range list { // a pointer to the map, and what was looked up in it, is known as the first
		list[0].Last = max(list[0].Last, one.Stage)
	}
	return list, broken
}

// atStage separates an array's name from its stage.
const atStage = "@"

// staged reports whether all arrays of a map have stages of their own.
func staged(names []string) bool {
	return names != nil && !slices.ContainsFunc(names, func(name string) bool { return !strings.Contains(name, atStage) })
}

// namesOf are the names in a map's tag; nil without one.
func namesOf(spec *ebpf.MapSpec) []string {
	i := slices.IndexFunc(spec.Tags, func(tag string) bool { return strings.HasPrefix(tag, tagArrays) })
	if i < 0 {
		return nil
	}
	return strings.Split(strings.TrimPrefix(spec.Tags[i], tagArrays), ",")
}
