package conquest

import (
	"fmt"
	"math/bits"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/algo/p4text"
)

// The generated parts of the P4 twin (p4/conquest).
//
// params.p4
//
//	CONQUEST_SHIFT    a window is 2^CONQUEST_SHIFT ns
//	CONQUEST_WINDOW   mask of a time's window, ns
//	CONQUEST_NEAREST  what is added to an arrival so that the nearest window's begin is the one it lies in
//	CONQUEST_TAU      ns
//	CONQUEST_COLUMNS  of a row
//	CONQUEST_QUEUES   entries of a total, of which the first is used
//	column_t          index type
//
// tables.p4
//
//	control ConquestT<j>, ConquestS<j>_<r>   a snapshot's total and rows: one register, reached from one table
//	control ConquestSnapshots(in bit<1> counted, in bit<32> window, in bit<32> back, in bit<32> row_0, in bit<32> row_1,
//	                          inout bit<32> limit, inout bit<32> more_0, inout bit<32> more_1)
//	    writes the snapshot of the window, reads those of the packet's wait; limit is alpha of their totals, more_r is negative where
//	    row r has more of the flow

// twinForms: the twin counts packets by 5-tuple, in the queue that they leave, and reports.
var twinForms = []algo.TwinForm{algo.Just("source", auto, "qdisc"), algo.Just("key", "5tuple"), algo.Just("count", "packets"), algo.Just("rows", "2"), algo.Just("queues", "1"),
	algo.Just("snapshots", "2", "4", "8"), algo.Just("reading", "nearest"), algo.Just("delay", "own"), algo.Just("action", "report")}

// P4 implements algo.Twin.
func (c *config) P4() (map[string]string, error) {
	switch {
	case c.history > 0:
		return nil, c.values.NoForm("history", "0: a packet looks back as long as it waited")
	case c.ramp > 0:
		return nil, c.values.NoForm("ramp", "0: no list of flows that grow")
	case bits.OnesCount32(c.alpha) != 1 || c.alpha >= 1<<alphaBits || c.alpha < 1<<(alphaBits-16):
		return nil, c.values.NoForm("alpha", "powers of two from 1/2 to 1/65536: a shift")
	}
	t := &p4Text{config: c}
	return map[string]string{"params": t.params(), "tables": t.tables()}, nil
}

// p4Text writes P4.
type p4Text struct {
	*config
	*p4text.Text
}

func (t *p4Text) params() string {
	t.Text = p4text.New("params", "conquest")
	t.Line("#define CONQUEST_SHIFT %d", t.shift)
	t.Line("#define CONQUEST_WINDOW %#x", uint32(1<<32-uint64(1)<<t.shift))
	t.Line("#define CONQUEST_NEAREST %d", 1<<t.shift/2-1)
	t.Line("#define CONQUEST_TAU %d", t.tau)
	t.Line("#define CONQUEST_COLUMNS %d", t.columns)
	t.Line("#define CONQUEST_QUEUES %d", t.perQueue())
	t.Line("typedef bit<%d> column_t;", max(1, bits.Len(uint(t.columns-1))))
	return t.String()
}

func (t *p4Text) tables() string {
	t.Text = p4text.New("tables", "conquest")
	t.Line("struct cell_t {\n    bit<32> window;\n    bit<32> count;\n}\n")
	for j := range t.snapshots {
		t.array(fmt.Sprintf("ConquestT%d", j), fmt.Sprintf("conquest_t%d", j), "bit<1>", "CONQUEST_QUEUES", j, false)
		t.limit(j)
		for r := range 2 {
			t.array(fmt.Sprintf("ConquestS%d_%d", j, r), fmt.Sprintf("conquest_s%d_%d", j, r), "column_t", "CONQUEST_COLUMNS", j, true)
		}
	}
	t.snapshotsControl()
	return t.String()
}

// turn is the low bits of a window's number: which snapshot is written.
func (t *p4Text) turn() string { return fmt.Sprintf("window[%d:0]", bits.Len(uint(t.snapshots))-2) }

// reach is the part of `back` with the number of windows that are read.
func (t *p4Text) reach() string { return fmt.Sprintf("back[31:%d]", t.shift) }

// array writes the control of one register, which adds what it held to n: an action adds what an ALU returns without a container for it. Of the
// totals all are read, and limit() decides which count; of the rows only what counts.
func (t *p4Text) array(control, register, index, entries string, j int, chosen bool) {
	t.Line("control %s(in bit<1> counted, in bit<32> window, in bit<32> back, in %s place, inout bit<32> n) {", control, index)
	t.Line("    Register<cell_t, %s>(%s, {0, 0}) %s;\n", index, entries, register)
	t.Line("    RegisterAction<cell_t, %s, bit<32>>(%s) write_cell = {", index, register)
	t.Line("        void apply(inout cell_t v, out bit<32> before) {\n            before = 0;\n            if (v.window == window) {\n                before = v.count;\n" +
		"                v.count = v.count + 1;\n            } else {\n                v.count = 1;\n            }\n            v.window = window;\n        }\n    };\n")
	t.Line("    RegisterAction<cell_t, %s, bit<32>>(%s) read_cell = {", index, register)
	t.Line("        void apply(inout cell_t v, out bit<32> held) {\n            held = 0;\n            if (v.window <= window && window - v.window <= %d) {\n                held = v.count;\n            }\n        }\n    };\n", t.snapshots-1)
	t.Line("    action write() { n = n + write_cell.execute(place); }\n    action read() { n = n + read_cell.execute(place); }\n    action skip() {}\n")
	entriesOf := t.rules(j, "write()", "read()", "skip()", chosen)
	t.keyed("turns", []string{"write", "read", "skip"}, chosen, entriesOf, "skip()")
}

// rules are the entries of snapshot j: it is written in its own window, and read by packets that reach back so far.
func (t *p4Text) rules(j int, write, read, skip string, chosen bool) (list []string) {
	width := 32 - t.shift
	add := func(turn int, reach, action string) {
		if chosen {
			list = append(list, fmt.Sprintf("(1, %d, %s): %s", turn, reach, action))
			return
		}
		list = append(list, fmt.Sprintf("(1, %d): %s", turn, action))
	}
	add(j, "_", write)
	for age := 1; age < t.snapshots; age++ {
		turn := (j + age) % t.snapshots
		if chosen {
			for reach := range age {
				add(turn, fmt.Sprint(reach), skip)
			}
			add(turn, fmt.Sprintf("%#x", uint32(1)<<width-1), skip) // the nearest begin lies ahead
		}
		add(turn, "_", read)
	}
	return list
}

// lanes is how many sums of a row are made at the same time: with two rows, as many reads as a stage has ALUs.
const lanes = 2

// limit takes alpha of a total, if the packet reaches back so far.
func (t *p4Text) limit(j int) {
	t.Line("control ConquestLimit%d(in bit<1> counted, in bit<32> window, in bit<32> back, inout bit<32> n) {", j)
	t.Line("    action take() { n = n >> %d; }\n    action drop() { n = 0; }\n", alphaBits-bits.TrailingZeros32(t.alpha))
	t.keyed("limits", []string{"take", "drop"}, true, t.rules(j, "take()", "take()", "drop()", true), "drop()")
}

// keyed writes a table over the window's turn and, where only what counts is touched, the packet's reach.
func (t *p4Text) keyed(name string, actions []string, chosen bool, entries []string, miss string) {
	keys := []string{"counted : ternary", t.turn() + " : ternary"} // exact, the ALU would not get the window: its bytes would lie apart on the crossbar
	if chosen {
		keys = []string{"counted : ternary", t.turn() + " : ternary", t.reach() + " : ternary"}
	}
	t.Table(name, keys, actions, entries, miss)
}

// part is the variable of snapshot j: t of a total, a and b of rows, of which there is one a lane. What is added to each other is in one group of
// containers, of which Tofino 1 has 16 of 32 bits and Tofino 2 twelve: the first ones are the output, and the limit is compared as the hash unit
// hands it over, which asks for no group.
func part(v string, j int) string {
	if v != "t" {
		j %= lanes
	}
	if j > 0 {
		return fmt.Sprint(v, j)
	}
	return map[string]string{"t": "limit", "a": "more_0", "b": "more_1"}[v]
}

// snapshotsControl wires them: totals, rows, and sums in place by halves and lanes.
func (t *p4Text) snapshotsControl() {
	n := t.snapshots
	parts := map[string]int{"t": n, "a": lanes, "b": lanes}
	t.Line("control ConquestSnapshots(in bit<1> counted, in bit<32> window, in bit<32> back, in bit<32> row_0, in bit<32> row_1,")
	t.Line("                          inout bit<32> limit, inout bit<32> more_0, inout bit<32> more_1) {")
	for _, v := range []string{"t", "a", "b"} {
		for j := 1; j < parts[v]; j++ {
			t.Line("    bit<32> %s%d = 0;", v, j)
		}
	}
	t.Line("    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) copy_0;\n    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) copy_1;")
	t.Line("")
	for j := range n {
		t.Line("    ConquestT%d() total_%d;\n    ConquestLimit%d() limit_%d;\n    ConquestS%d_0() row_0_%d;\n    ConquestS%d_1() row_1_%d;", j, j, j, j, j, j, j, j)
	}
	t.Line("")
	for _, v := range []string{"t", "a", "b"} {
		for step := parts[v] / 2; step >= 1; step /= 2 {
			for j := range step {
				t.Line("    action sum_%s_%d_%d() { %s = %s + %s; }", v, step, j, part(v, j), part(v, j), part(v, j+step))
			}
		}
	}
	t.Line("    action compare_0() { more_0 = copy_0.get(limit) - more_0; }\n    action compare_1() { more_1 = copy_1.get(limit) - more_1; }\n\n    apply {")
	width := fmt.Sprintf("[%d:0]", max(1, bits.Len(uint(t.columns-1)))-1)
	for j := range n {
		t.Line("        total_%d.apply(counted, window, back, 0, %s);", j, part("t", j))
	}
	for j := range n {
		t.Line("        limit_%d.apply(counted, window, back, %s);", j, part("t", j))
	}
	for r, v := range []string{"a", "b"} {
		for j := range n {
			t.Line("        row_%d_%d.apply(counted, window, back, row_%d%s, %s);", r, j, r, width, part(v, j))
		}
	}
	for _, v := range []string{"t", "a", "b"} {
		for step := parts[v] / 2; step >= 1; step /= 2 {
			for j := range step {
				t.Line("        sum_%s_%d_%d();", v, step, j)
			}
		}
	}
	t.Line("        compare_0();\n        compare_1();\n    }\n}")
}
