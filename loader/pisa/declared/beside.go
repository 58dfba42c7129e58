package declared

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// tagArrays names register arrays that stand side by side in one map.
const tagArrays = "pisa:arrays="

// sideBySide takes a map apart into the arrays that its tag names: each has one word of the map's element. Other maps are one array.
func sideBySide(a *Array) ([]*Array, []rule.Violation) {
	names := namesOf(a.Spec)
	if names == nil {
		return []*Array{a}, nil
	}
	refuse := func(which int, code rule.Code, format string, args ...any) ([]*Array, []rule.Violation) {
		return []*Array{a}, []rule.Violation{{Rule: which, Code: code, Map: a.Name, Insn: -1, Reason: fmt.Sprintf(format, args...)}}
	}
	switch {
	case a.Kind != Register || a.Spec.Type != ebpf.Array:
		return refuse(1, rule.Unlisted, "a %s in a map of type %s is one array, not several side by side", a.Kind, a.Spec.Type)
	case a.Width != len(names)*elementBits/8:
		return refuse(3, rule.ElementWidth, "an element has %d bits and not %d for each of %d arrays", a.Width*8, elementBits, len(names))
	}
	var list []*Array
	for _, name := range names {
		one := *a
		one.Name, one.Width, one.Beside = name, elementBits/8, len(names)
		list = append(list, &one)
	}
	return list, nil
}

// namesOf is what a map's tag lists; nil without one.
func namesOf(spec *ebpf.MapSpec) []string {
	i := slices.IndexFunc(spec.Tags, func(tag string) bool { return strings.HasPrefix(tag, tagArrays) })
	if i < 0 {
		return nil
	}
	return strings.Split(strings.TrimPrefix(spec.Tags[i], tagArrays), ",")
}
