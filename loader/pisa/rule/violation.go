// Package rule names the memory rules, their violations, and the remedies.
package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrMemoryRules is wrapped by every error of a program that breaks a memory rule.
var ErrMemoryRules = errors.New("memory rules")

// ErrTooComplex: the proof was ended: the program has more distinct states than the limit.
var ErrTooComplex = errors.New("too many states")

// ErrMalformed: the instructions are not a program that the kernel would load either.
var ErrMalformed = errors.New("malformed program")

// Code names a kind of violation. It does not change once released.
type Code string

// The kinds of violation.
const (
	StageOrder    Code = "stage-order"   // rule 1: an array of an earlier stage after one of a later stage
	StageMissing  Code = "stage-missing" // rule 1: no stage, or more than one
	SameStage     Code = "same-stage"    // rule 1: one array feeds another of its own stage
	FlowState     Code = "flow-state"    // rule 1: state that survives a packet outside of a register array
	Unlisted      Code = "unlisted"      // rule 1: something that is not known to be without state
	SecondAccess  Code = "second-access" // rule 2: a second element, or a second access to one
	LateAccess    Code = "late-access"   // rule 2: an access that waits for an array of a later stage
	Unfollowed    Code = "unfollowed"    // rule 2: an access whose target the proof cannot see
	ElementWidth  Code = "element-width" // rule 3: more than 64 bits
	Conditions    Code = "conditions"    // rule 4: more than two conditions inside a read-modify-write
	Arithmetic    Code = "arithmetic"    // rule 4: a product or quotient inside a read-modify-write
	Recirculation Code = "recirculation" // rule 5: a second pass that is not bounded
	Chain         Code = "chain"         // rule 5: a tail call that does not move forward in the chain
	Fit           Code = "fit"           // rule 6: more than the largest target has
)

// rules are the headings under which an operator finds the rule in docs/memory-rules.md.
var rules = [...]string{
	1: "one stage an array, stages in increasing order",
	2: "one read-modify-write of one element an array and packet",
	3: "elements of at most 64 bits",
	4: "two conditions, no product inside a read-modify-write",
	5: "at most one recirculation a packet, counted and limited",
	6: "stages and bits fit the switch",
}

// Remedies are texts for the author of an algorithm.
var Remedies = map[Code]string{
	StageOrder:    "declare the array in a later stage, or touch it earlier",
	StageMissing:  "declare the array with REGISTER, REGISTER_BANKED or TALLY",
	SameStage:     "declare the dependent array one stage later, or keep what does not depend on the other in a word of its own",
	FlowState:     "keep it in a REGISTER, and what only userspace reads in a TALLY or in COUNTERS",
	Unlisted:      "take what is on the lists (docs/memory-rules.md), or add an entry with its reason and a test",
	SecondAccess:  "touch one element once a packet: split the array in two, or recirculate",
	LateAccess:    "finish the read-modify-write before the later stage, or recirculate for the write",
	Unfollowed:    "reach elements through reg_at() and keep the pointer in a variable",
	ElementWidth:  "split the element over two arrays of the same stage",
	Conditions:    "move conditions on the packet in front of the access, or the decision into a later stage",
	Arithmetic:    "shift, look the product up in a TABLE, or calculate it after the access",
	Recirculation: "use recirculate() of recirc.h",
	Chain:         "use chain_next() of chain.h",
	Fit:           "take fewer entries, or other stages: xdpmon pisa prints what each takes",
}

// Violation is one place at which a program breaks a rule.
type Violation struct {
	Rule    int    `json:"rule"` // 1 to 6, as in docs/memory-rules.md
	Code    Code   `json:"code"`
	Program string `json:"program,omitempty"`
	Map     string `json:"map,omitempty"`
	Insn    int    `json:"insn"`             // raw offset as in a disassembly; -1 where there is no instruction
	Source  string `json:"source,omitempty"` // "file.c:line: text", empty without BTF line information
	Reason  string `json:"reason"`
}

func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule %d (%s)", v.Rule, rules[v.Rule])
	if v.Program != "" {
		fmt.Fprintf(&b, ": program %s", v.Program)
	}
	if v.Map != "" {
		fmt.Fprintf(&b, ": map %s", v.Map)
	}
	fmt.Fprintf(&b, ": %s", v.Reason)
	switch {
	case v.Source != "" && v.Insn >= 0:
		fmt.Fprintf(&b, "\n\tat %s (instruction %d)", v.Source, v.Insn)
	case v.Source != "":
		fmt.Fprintf(&b, "\n\tat %s", v.Source)
	case v.Insn >= 0:
		fmt.Fprintf(&b, "\n\tat instruction %d", v.Insn)
	}
	fmt.Fprintf(&b, "\n\tremedy: %s", Remedies[v.Code])
	return b.String()
}

// Violations is the error of a program that breaks memory rules. errors.Is(err, ErrMemoryRules) holds.
type Violations struct {
	List []Violation
}

func (v *Violations) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %d broken", ErrMemoryRules, len(v.List))
	for _, group := range v.byPlace() {
		fmt.Fprintf(&b, "\n%s", group)
	}
	return b.String()
}

func (v *Violations) Unwrap() error { return ErrMemoryRules }

// byPlace merges what the XDP and the TC form of one function do alike, so that each mistake is read once.
func (v *Violations) byPlace() []Violation {
	var out []Violation
	for _, one := range v.List {
		i := slices.IndexFunc(out, func(o Violation) bool {
			return one.Source != "" && o.Source == one.Source && o.Code == one.Code && o.Map == one.Map
		})
		if i < 0 {
			out = append(out, one)
			continue
		}
		out[i].Program += ", " + one.Program
	}
	return out
}
