package lean

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
)

// Rules are the table entries that a control plane sets while a switch runs: which segments are followed, the weights of their
// delays, and the limits from which flows are reported.
type Rules struct {
	Follow []FollowRule `json:"follow"`
	Values []ValueRule  `json:"values"`
	Limits []Limit      `json:"limits"`
}

// Ternary matches values that equal it in the mask's bits.
type Ternary struct {
	Value uint32 `json:"value"`
	Mask  uint32 `json:"mask"`
}

// FollowRule is an entry of Ingress.lean.lat_records.records: segments (1) whose masked hash is 0 insert a record, ACKs (2)
// remove it.
type FollowRule struct {
	Table  string  `json:"table"`
	Action string  `json:"action"`
	Ask    int     `json:"ask"`
	Luck   Ternary `json:"luck"`
}

// ValueRule is an entry of Ingress.lean.lat_values.values: what a delay adds to the sketch on top of its own length, both in
// ticks of 2^13 ns.
type ValueRule struct {
	Table  string  `json:"table"`
	Action string  `json:"action"`
	Delay  Ternary `json:"delay"`
	Value  uint32  `json:"v"`
}

// Limit is a parameter of a row's register.
type Limit struct {
	Param string `json:"param"`
	Value int32  `json:"value"`
}

// P4Rules implements algo.TwinRules.
func (c *config) P4Rules() ([]byte, error) {
	v := c.values
	odds, err := c.twinChance()
	if err != nil {
		return nil, err
	}
	if odds.rate, err = algo.ParseFloat(v.Text("switch.rate")); err != nil || !(odds.rate >= 0 && odds.rate <= 1e9) {
		return nil, v.Error("switch.rate", "segments a second that were followed, up to 1e9")
	}
	limits, err := c.switchLimits()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(Rules{Follow: odds.followRules(), Values: odds.valueRules(), Limits: limits}, "", " ")
	return append(text, '\n'), err
}

func (c *chance) followRules() []FollowRule {
	const table = "Ingress.lean.lat_records.records"
	luck := Ternary{Mask: uint32(c.luck())}
	return []FollowRule{{table, "insert", 1, luck}, {table, "take", 2, luck}}
}

func (c *chance) valueRules() (rules []ValueRule) {
	for bin := 1; bin < delayBins.Len(); bin++ {
		rules = append(rules, ValueRule{"Ingress.lean.lat_values.values", "weigh", delayPrefix(bin), c.worthOf(bin).more})
	}
	return rules
}

// switchLimits are the parameters of the four rows of each statistic that the pipeline reads: none of them with keys from bits.
func (c *config) switchLimits() (all []Limit, err error) {
	limits, err := parseLimits(c.values)
	if err != nil {
		return nil, err
	}
	if c.buckets > 0 {
		if c.values.Text("switch.limit") != strconv.Itoa(twinLimit) {
			return nil, c.values.NoForm("switch.limit", "no reports with lean.keys=bits")
		}
		return []Limit{}, nil
	}
	for _, s := range twinStats {
		least := limits[s.stat]
		if !s.valued {
			least-- // a row is compared before the event adds its 1
		}
		for r := range sketch.Rows - 1 {
			row := fmt.Sprintf("Ingress.lean.%s_%d.", s.name, r)
			all = append(all, Limit{row + "at_least", least}, Limit{row + "at_most", -least})
		}
	}
	return all, nil
}

// parseLimits reads one number for all statistics, or NAME=N for some of them.
func parseLimits(v algo.Values) (limits [stats]int32, err error) {
	for s := range limits {
		limits[s] = twinLimit
	}
	for part := range strings.SplitSeq(v.Text("switch.limit"), ",") {
		name, number, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			number = name
		}
		n, err := strconv.ParseInt(number, 0, 32)
		s := slices.Index(statNames[:], name)
		if err != nil || n < 1 || n > math.MaxInt32/2 || named && s < 0 {
			return limits, v.Error("switch.limit", "a number from 1 to 2^30, or a list like latency=300,ooo=20")
		}
		for i := range limits {
			if !named || i == s {
				limits[i] = int32(n)
			}
		}
	}
	return limits, nil
}
