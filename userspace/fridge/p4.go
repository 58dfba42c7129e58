package fridge

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/algo/p4text"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
)

// The generated parts of the twin p4/fridge. It measures tcp-handshake with both legs, tcp-data or dns, with the table correction; rows are
// 0 for the first leg, or the only one, and 1 for the sum. What p4/fridge/fridge.p4 includes and relies on:
//
// params.p4
//
//	FRIDGE_MATCH           the rule, as enum match_kind
//	FRIDGE_LEGS            1: a final packet ends what a response has answered
//	FRIDGE_TICK            times count 2^FRIDGE_TICK ns
//	FRIDGE_ENTRIES         slots of all fridges: fridge_entries, fridge_survived, fridge_middle
//	FRIDGE_SHARDS          words of fridge_inserts
//	FRIDGE_BINS            delay bins, 2^mantissa an octave
//	FRIDGE_HIST_ENTRIES    entries of fridge_hist and fridge_hits: [bank][row][fridge][bin]
//	FRIDGE_SECOND_ENTRIES  words of fridge_second: [bank][fridge][bin]
//	FRIDGE_REPEATS_ENTRIES words of fridge_repeats: [bank][fridge][bin]
//	slot_t, shard_t, cell_t  index types
//
// tables.p4
//
//	struct place_t, PLACE_NONE
//	control FridgePlace(in bit<32> slot, in bit<32> luck, inout place_t at)
//	    route and coin as ranges: high half of luck is the route, low half the coin
//	control FridgeDelayBin(in bit<32> delay, in cell_t plane, out cell_t cell)
//	    log-linear bins by prefix, as bins_index of bpf/include/bins.h, added to the plane's offset
//	control FridgeGapBin(in bit<24> gap, in cell_t plane, out cell_t cell)
//	    the same with fewer bins, for insertions between two of the same request
//	control FridgeWeight(in bit<2> part, in bit<24> x, out bit<32> weight, out bit<32> exponent)
//	    1/q in 2^-8 by prefix of x, and its exponent in 2^-8: the rules that fridge_weights is made from
//	control FridgePlanes(in bit<1> bank, in bit<2> part, in role_t role, inout cell_t first, inout cell_t second)
//	    offset of the plane of a bank, row and fridge: in fridge_hist, or for requests in fridge_repeats
//
// Prefixes exclude each other, so they are ternary keys: the Tofino back end takes no constant entries for lpm ones.

// twinForms: the twin measures both legs of a handshake, acknowledgements of data, or answers to queries, with a table of factors.
var twinForms = []algo.TwinForm{algo.Just("match", "tcp-handshake", "tcp-data", "dns"), algo.Just("side", "any"), algo.Just("group", "none"), algo.Just("samples", "0"), twinLegs, twinFixed, algo.Just("correction", auto, "table")}

var twinFixed = algo.TwinForm{Key: "fridges", Has: "fixed probabilities", Fits: func(v algo.Values) bool { return !strings.HasPrefix(v.Text("fridges"), auto) }}

var twinLegs = algo.TwinForm{Key: "legs", Has: auto + " or true", Fits: func(v algo.Values) bool {
	return v.Text("legs") != "false" || v.Text("match") != delay.TCPHandshake.String()
}}

// longestTick: the switch's time stamp has 48 bits of ns, of which the twin takes 32.
const longestTick = 1 << 16

// P4 implements algo.Twin.
func (c *config) P4() (map[string]string, error) {
	switch {
	case !c.recorded:
		return nil, c.values.NoForm("counter", "survived insertions that are recorded")
	case !c.rules.Restart:
		return nil, c.values.NoForm("retransmit", "restart")
	case c.tick > longestTick:
		return nil, c.values.NoForm("tick", "at most 65536ns")
	}
	own := *c
	own.table = true
	if c.values.Text("resolution") == auto {
		own.refine()
	}
	t := &twin{config: &own}
	t.slots, t.shards = layout.Totals(own.parts)
	if err := t.aligned(); err != nil {
		return nil, err
	}
	return map[string]string{"params": t.params(), "tables": t.tables()}, nil
}

// twin writes P4.
type twin struct {
	*config
	slots, shards int
	*p4text.Text
}

// aligned checks that every fridge begins at a multiple of its size: the twin forms an index by concatenating a prefix and a
// slice of the hash.
func (t *twin) aligned() error {
	base, shard := 0, 0
	for _, p := range t.parts {
		if base%p.Slots != 0 || shard%p.Shards != 0 {
			return t.values.NoForm("fridges", fmt.Sprintf("fridges that begin at a multiple of their size, and %s begins at slot %d: list them largest first", p, base))
		}
		base += p.Slots
		shard += p.Shards
	}
	return nil
}

func (t *twin) bins() maps.Bins { return t.scale().Bins }

// width of an index for n entries.
func width(n int) int { return max(1, bits.Len(uint(n-1))) }

func (t *twin) params() string {
	t.Text = p4text.New("params", "fridge")
	planes := len(t.parts) * t.bins().Len()
	t.Line("#define FRIDGE_MATCH %d /* tcp-handshake 0, tcp-data 1, dns 3 */", t.rules.Kind)
	t.Line("#define FRIDGE_LEGS %d", map[bool]int{true: 1}[t.rules.Finals])
	t.Line("#define FRIDGE_TICK %d", bits.TrailingZeros64(uint64(t.tick)))
	t.Line("#define FRIDGE_ENTRIES %d", t.slots)
	t.Line("#define FRIDGE_SHARDS %d", t.shards)
	t.Line("#define FRIDGE_BINS %d", t.bins().Len())
	t.Line("#define FRIDGE_HIST_ENTRIES %d", 2*t.rows*planes)
	if t.rules.Finals {
		t.Line("#define FRIDGE_SECOND_ENTRIES %d", 2*planes)
	}
	t.Line("#define FRIDGE_REPEATS_ENTRIES %d", 2*len(t.parts)*delay.RepeatBins.Len())
	t.Line("typedef bit<%d> slot_t;", width(t.slots))
	t.Line("typedef bit<%d> shard_t;", width(t.shards))
	t.Line("typedef bit<16> cell_t;")
	return t.String()
}

func (t *twin) tables() string {
	t.Text = p4text.New("tables", "fridge")
	t.place()
	t.Line("")
	t.bin("FridgeDelayBin", "delay", delay.Bits, t.bins())
	t.Line("")
	t.bin("FridgeGapBin", "gap", survivedBits, delay.RepeatBins)
	t.Line("")
	t.weights()
	t.Line("")
	t.planes()
	return t.String()
}

// table writes a control with one table: its actions, keys and constant entries.
func (t *twin) table(name, actions string, keys, entries []string, miss string) {
	t.Line("    table %s {\n        key = {", name)
	for _, k := range keys {
		t.Line("            %s;", k)
	}
	t.Line("        }\n        actions = {")
	for _, a := range strings.Fields(actions) {
		t.Line("            %s;", a)
	}
	t.Line("        }\n        const entries = {")
	for _, e := range entries {
		t.Line("            %s;", e)
	}
	t.Line("        }")
	if miss != "" {
		t.Line("        const default_action = %s;", miss)
	}
	t.Line("        size = %d;\n    }\n\n    apply {\n        %s.apply();\n    }\n}", len(entries), name)
}

const placeType = `struct place_t {
    slot_t slot;
    shard_t shard;
    bit<2> part;
    bit<1> admitted;
}
#define PLACE_NONE { 0, 0, 0, 0 }

control FridgePlace(in bit<32> slot, in bit<32> luck, inout place_t at) {`

func (t *twin) place() {
	t.Line(placeType)
	var actions, entries []string
	places := layout.Of(t.parts)
	for k, p := range places[:len(t.parts)] {
		free, admit := p.Bits-p.ShardBits, p.Admit
		t.Line("    action in_%d(bit<1> admitted) {", k)
		t.Line("        at.slot = %s;", index(p.Base, p.Bits, width(t.slots), 0))
		t.Line("        at.shard = %s;", index(p.Shard, p.ShardBits, width(t.shards), free))
		t.Line("        at.part = %d;\n        at.admitted = admitted;\n    }\n", k)
		actions = append(actions, fmt.Sprintf("in_%d", k))
		route := fmt.Sprintf("%d .. %d", t.routeBefore(k), p.Route-1)
		entries = append(entries, fmt.Sprintf("(%s, 0 .. %d): in_%d(1)", route, admit-1, k))
		if admit < layout.One {
			entries = append(entries, fmt.Sprintf("(%s, %d .. %d): in_%d(0)", route, admit, layout.One-1, k))
		}
	}
	t.table("place", strings.Join(actions, " "), []string{"luck[31:16] : range", "luck[15:0]  : range"}, entries, "")
}

func (t *twin) routeBefore(k int) uint32 {
	if k == 0 {
		return 0
	}
	return layout.Of(t.parts)[k-1].Route
}

// index concatenates the high bits of base and the low bits, n slots wide, of the hash from bit `from` on.
func index(base, n uint32, width int, from uint32) string {
	high := width - int(n)
	hash := fmt.Sprintf("slot[%d:%d]", from+n-1, from)
	switch {
	case n == 0:
		return fmt.Sprintf("%d", base)
	case high == 0:
		return hash
	}
	return fmt.Sprintf("%dw%d ++ %s", high, base>>n, hash)
}

// prefix matches a range [low, low + size).
func prefix(width int, low, size uint64) string {
	return fmt.Sprintf("%dw%#x &&& %dw%#x", width, low, width, (uint64(1)<<width-1)&^(size-1))
}

// bin writes a table that maps a number of width bits to the cell of its bin. Its action adds the plane, which is known earlier than the
// number: a second table for that would take another stage.
func (t *twin) bin(control, name string, width int, bins maps.Bins) {
	t.Line("control %s(in bit<%d> %s, in cell_t plane, out cell_t cell) {", control, width, name)
	t.Line("    action set_bin(cell_t b) {\n        cell = plane + b;\n    }\n")
	var entries []string
	for bin := range bins.Len() {
		if low, high := bins.Range(bin); low>>width == 0 {
			entries = append(entries, fmt.Sprintf("%s: set_bin(%d)", prefix(width, low, high-low), bin))
		}
	}
	t.table("bins", "set_bin", []string{name + " : ternary"}, entries, "set_bin(0)")
}

func (t *twin) weights() {
	t.Line("control FridgeWeight(in bit<2> part, in bit<24> x, out bit<32> weight, out bit<32> exponent) {")
	t.Line("    action set_weight(bit<32> w, bit<32> e) {\n        weight = w;\n        exponent = e;\n    }\n")
	var entries []string
	for k, p := range t.parts {
		for _, r := range rules(p.Factor()) {
			entries = append(entries, fmt.Sprintf("(%d, %s): set_weight(%d, %d)", k, prefix(survivedBits, uint64(r.low), uint64(r.size)), r.weight, r.exponent))
		}
	}
	t.table("weights", "set_weight", []string{"part : exact", "x : ternary"}, entries, fmt.Sprintf("set_weight(%d, 0)", uint32(math.MaxUint32)))
}

func (t *twin) planes() {
	t.Line("control FridgePlanes(in bit<1> bank, in bit<2> part, in role_t role, inout cell_t first, inout cell_t second) {")
	t.Line("    action begin(cell_t first_plane, cell_t second_plane) {")
	t.Line("        first = first_plane;\n        second = second_plane;\n    }\n")
	roles := []string{"ROLE_RESPONSE", "ROLE_FINAL"}[:t.rows]
	var entries []string
	n, plane := len(t.parts), t.bins().Len()
	for bank := range 2 {
		for k := range n {
			entries = append(entries, fmt.Sprintf("(%d, %d, ROLE_REQUEST): begin(%d, 0)", bank, k, (bank*n+k)*delay.RepeatBins.Len()))
			for row, role := range roles {
				first, second := ((bank*t.rows+row)*n+k)*plane, (bank*n+k)*plane
				entries = append(entries, fmt.Sprintf("(%d, %d, %s): begin(%d, %d)", bank, k, role, first, second))
			}
		}
	}
	t.table("planes", "begin", []string{"bank : exact", "part : exact", "role : exact"}, entries, "begin(0, 0)")
}
