package heavy

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo/p4text"
)

// The generated parts of the P4 twins of PRECISION (p4/precision, p4/hhh). NAME is the algorithm's, in capitals and as a
// control's name.
//
// params.p4
//
//	NAME_ENTRIES             entries of one way, both banks
//	NAME_NEXT                what a counter's word is short of the value that an admitted flow gets: initial + 1
//	way_slot_t, bank_slot_t  index types, without and with the bank
//
// tables.p4
//
//	control NameAdmission(in bit<32> next, in bit<32> coin, out bit<32> left)
//	    the 9/8 approximation: left = coin - 2^31 / (2^y floor(T)) for next = 2^y T, by ternary prefixes of next; it is
//	    negative with that probability. Below 8 the probability is exact.
func (w *Ways) P4() map[string]string {
	return map[string]string{"params": w.params(), "tables": w.admissionTable()}
}

func (w *Ways) params() string {
	width, capitals := bits.Len(uint(w.PerWay()-1)), strings.ToUpper(w.Prefix)
	text := p4text.New("params", w.Prefix)
	text.Line("#define %s_ENTRIES %d", capitals, 2*w.PerWay())
	text.Line("#define %s_NEXT %d", capitals, w.Initial+1)
	text.Line("typedef bit<%d> way_slot_t;", width)
	text.Line("typedef bit<%d> bank_slot_t;", width+1)
	return text.String()
}

func (w *Ways) admissionTable() string {
	var b strings.Builder
	b.WriteString(p4text.Head("tables", w.Prefix))
	fmt.Fprintf(&b, "control %sAdmission(in bit<32> next, in bit<32> coin, out bit<32> left) {\n", strings.ToUpper(w.Prefix[:1])+w.Prefix[1:])
	b.WriteString("    action toss(bit<32> short) {\n        left = coin + short;\n    }\n\n" +
		"    table admission {\n        key = {\n            next : ternary;\n        }\n" +
		"        actions = {\n            toss;\n        }\n        const entries = {\n")
	entries := admissions()
	for _, e := range entries {
		fmt.Fprintf(&b, "            32w%#x &&& 32w%#x: toss(%#x);\n", e.low, e.mask, -e.limit)
	}
	fmt.Fprintf(&b, "        }\n        const default_action = toss(0);\n        size = %d;\n    }\n\n", len(entries)+1)
	b.WriteString("    apply {\n        left = 0;\n        admission.apply();\n    }\n}\n")
	return b.String()
}

// rule: a value with this prefix is admitted when a 31-bit coin is below limit.
type rule struct{ low, mask, limit uint32 }

func admissions() (rules []rule) {
	for value := uint32(1); value < 8; value++ {
		rules = append(rules, rule{value, ^uint32(0), 1 << 31 / value})
	}
	for y := range uint32(29) {
		for k := uint32(8); k < 16; k++ {
			rules = append(rules, rule{k << y, ^uint32(0) << y, 1 << 31 / k >> y})
		}
	}
	return rules
}
