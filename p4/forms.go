package p4

import (
	"fmt"
	"slices"
	"strings"
)

// Form is a variant of a twin, chosen by -D when it is compiled.
type Form map[string]string

// String is the form in the syntax of a command line.
func (f Form) String() string {
	var words []string
	for name, value := range f {
		words = append(words, fmt.Sprintf("-D%s=%s", name, value))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// Forms lists the forms of a twin: methods and definitions, sets of statistics. A twin without choices has one.
func Forms(twin string) (forms []Form) {
	switch twin {
	case "reorder":
		for method := range 3 {
			for definition := 1; definition <= 3; definition++ {
				forms = append(forms, Form{"REORDER_METHOD": fmt.Sprint(method), "REORDER_DEFINITION": fmt.Sprint(definition)})
			}
		}
	case "lean":
		for set := 1; set <= 15; set++ {
			forms = append(forms, Form{"LEAN_STATS": fmt.Sprint(set)})
		}
	default:
		forms = []Form{{}}
	}
	return forms
}
