package ahab

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/algo/p4text"
)

// The generated parts of the P4 twin (p4/ahab).
//
// params.p4
//
//	AHAB_SLICES, AHAB_TOP     slices with the one that is nobody's, and the highest bit of their numbers
//	AHAB_COLUMNS, AHAB_FLOWS  cells of a row, countdowns
//	AHAB_TALLIES              words of ahab_passed and ahab_lost: [bank][slice]
//	slice_t, column_t, flow_t, tally_t  index types
//
// tables.p4
//
//	control AhabLength(in headers_t hdr, inout bit<32> len)     what stands in front of the IP packet, bytes
//	control AhabScale(in bit<8> scale, in bit<32> len, inout bit<32> charge)  len by 2^(scale - AHAB_SCALE)
//	control AhabStep(in bit<32> limit, inout bit<32> low, inout bit<32> high)  a power of two below and above the limit
//	control AhabDigits(in bit<32> rate, ..., inout bit<32> d, inout bit<32> a, inout bit<32> b, inout bit<32> c)
//	    numbers by the six bits below the highest one of the rate
//	control AhabDigit(in bit<32> d, in bit<32> n, inout bit<32> i, inout bit<32> j)   the same of one quotient
//	control AhabMove(in bit<32> limit, in bit<32> share, inout bit<32> by)  a step, times a share of it in 2^-15
//	control AhabLow, AhabMid, AhabHigh, AhabOver  a sum: one register, reached from one table, but not where nothing fits:
//	    indices are made by the hash unit, which only an entry has

// twinForms: the twin has the table's arithmetic, and drops.
var twinForms = []algo.TwinForm{algo.Just("form", "table"), algo.Just("update", "interpolate"), algo.Just("dry-run", "false")}

// scaleZero is the scale of a charge that is the length; smaller ones shift to the right.
const scaleZero = 16

// mostScale and leastScale of slices' norms (2^8 to 2^-8) and users' weights (to 1000) together.
const (
	mostScale  = 12
	leastScale = -13
)

// P4 implements algo.Twin.
func (c *config) P4() (map[string]string, error) {
	c, err := c.twin()
	if err != nil {
		return nil, err
	}
	t := &p4Text{config: c}
	return map[string]string{"params": t.params(), "tables": t.tables()}, nil
}

// twin is the full configuration, where a switch can have it.
func (c *config) twin() (*config, error) {
	c, err := c.full()
	if err != nil {
		return nil, err
	}
	for _, s := range c.slices {
		if s.capacity > 100e9/8 {
			return nil, c.values.NoForm("capacity", "at most 100Gbit a slice")
		}
	}
	if c.path != "" {
		for _, m := range c.plan.Members() {
			if m.Interface != 0 || m.Mark != nil {
				return nil, c.values.NoForm("config", "slices by VLANs and prefixes, not by interfaces and marks")
			}
		}
	}
	return c, nil
}

// p4Text writes P4.
type p4Text struct {
	*config
	*p4text.Text
}

func (t *p4Text) params() string {
	t.Text = p4text.New("params", "ahab")
	n := int(t.entries())
	width := func(n int) int { return max(1, bits.Len(uint(n-1))) }
	t.Line("#define AHAB_SLICES %d", n)
	t.Line("#define AHAB_TOP %d", width(n)-1)
	t.Line("#define AHAB_COLUMNS %d", t.columns)
	t.Line("#define AHAB_COLUMN_TOP %d", width(t.columns)-1)
	t.Line("#define AHAB_FLOWS %d", t.flows)
	t.Line("#define AHAB_FLOW_TOP %d", width(t.flows)-1)
	t.Line("#define AHAB_TALLIES %d", 2*n)
	t.Line("typedef bit<%d> slice_t;", width(n))
	t.Line("typedef bit<%d> column_t;", width(t.columns))
	t.Line("typedef bit<%d> flow_t;", width(t.flows))
	t.Line("typedef bit<%d> tally_t;", width(2*n))
	return t.String()
}

func (t *p4Text) tables() string {
	t.Text = p4text.New("tables", "ahab")
	t.lengths()
	t.scales()
	t.steps()
	t.digits("AhabDigits", "d", []string{"a", "b", "c"}, "in bit<32> rate, in bit<32> low, in bit<32> mid, in bit<32> high", "rate", []string{"low", "mid", "high"})
	t.digits("AhabDigit", "j", []string{"i"}, "in bit<32> whole, in bit<32> part", "whole", []string{"part"})
	t.moves()
	for n, name := range []string{"low", "mid", "high", "over"} {
		t.sum(n, name)
	}
	return t.String()
}

// lengths: bytes of Ethernet, tags, PPPoE and labels, and of an IPv6 header, which its length leaves out.
func (t *p4Text) lengths() {
	t.Line("control AhabLength(in headers_t hdr, inout bit<32> len) {")
	t.Line("    action front(bit<32> bytes) { len = len + bytes; }\n")
	keys := []string{"hdr.ipv6.isValid() : ternary", "hdr.pppoe.isValid() : ternary"}
	for n := range 3 {
		keys = append(keys, fmt.Sprintf("hdr.vlan[%d].isValid() : ternary", n))
	}
	for n := range 4 {
		keys = append(keys, fmt.Sprintf("hdr.mpls[%d].isValid() : ternary", n))
	}
	var entries []string
	for six := range 2 {
		for tags := range 4 {
			for kind := range 6 { // plain, PPPoE, labels
				match, bytes := []string{fmt.Sprint(six == 1), fmt.Sprint(kind == 1)}, 14+40*six+4*tags
				ladder := func(n, most int) {
					for i := range most {
						switch {
						case i < n-1:
							match = append(match, "_") // those in front of the last one are there
						case i == n-1:
							match = append(match, "true")
						case i == n:
							match = append(match, "false")
						default:
							match = append(match, "_")
						}
					}
				}
				ladder(tags, 3)
				ladder(max(0, kind-1), 4)
				switch {
				case kind == 1:
					bytes += 8
				case kind > 1:
					bytes += 4 * (kind - 1)
				}
				entries = append(entries, fmt.Sprintf("(%s): front(%d)", strings.Join(match, ", "), bytes))
			}
		}
	}
	t.Table("fronts", keys, []string{"front"}, entries, "front(14)")
}

func (t *p4Text) scales() {
	t.Line("#define AHAB_SCALE %d\n", scaleZero)
	t.Line("control AhabScale(in bit<8> scale, in bit<32> len, inout bit<32> charge) {")
	var names, entries []string
	for shift := leastScale; shift <= mostScale; shift++ {
		name, op := fmt.Sprintf("up_%02d", shift), fmt.Sprintf("<< %d", shift)
		if shift < 0 {
			name, op = fmt.Sprintf("down_%02d", -shift), fmt.Sprintf(">> %d", -shift)
		}
		t.Line("    action %s() { charge = len %s; }", name, op)
		names, entries = append(names, name), append(entries, fmt.Sprintf("%d: %s()", scaleZero+shift, name))
	}
	t.Line("    action none() {}\n")
	t.Table("scales", []string{"scale : exact"}, append(names, "none"), entries, "none()")
}

// highest is a ternary key of 32 bits whose highest one is bit n.
func highest(n int) string { return fmt.Sprintf("%#x &&& %#x", uint32(1)<<n, ^uint32(0)<<n) }

// leastBit is the highest bit of the lowest limit.
const leastBit = 4

// step up and down, which is added: what is taken away from a field of a packet cannot be taken from a table.
func step(n int) string { return fmt.Sprintf("%d, %d", 1<<n, 1<<32-1<<n) }

func (t *p4Text) steps() {
	t.Line("control AhabStep(in bit<32> limit, inout bit<32> low, inout bit<32> high) {")
	t.Line("    action step(bit<32> up, bit<32> down) {\n        low = limit + down;\n        high = limit + up;\n    }\n")
	var entries []string
	for n := 30; n > leastBit; n-- {
		entries = append(entries, fmt.Sprintf("%s: step(%s)", highest(n), step(n-1)))
	}
	t.Table("steps", []string{"limit : ternary"}, []string{"step"}, entries, fmt.Sprintf("step(%s)", step(leastBit-1)))
}

// digits of numbers by the position of one's highest bit.
func (t *p4Text) digits(control, whole string, parts []string, ins, of string, from []string) {
	outs := []string{"inout bit<32> " + whole}
	for _, p := range parts {
		outs = append(outs, "inout bit<32> "+p)
	}
	t.Line("control %s(%s, %s) {", control, ins, strings.Join(outs, ", "))
	var names, entries []string
	for shift := range 32 - ratioBits + 1 {
		t.Line("    action down_%d() {\n        %s = %s >> %d;", shift, whole, of, shift)
		for n, p := range parts {
			t.Line("        %s = %s >> %d;", p, from[n], shift)
		}
		t.Line("    }")
		names = append(names, fmt.Sprintf("down_%d", shift))
	}
	for n := 31; n >= ratioBits; n-- {
		entries = append(entries, fmt.Sprintf("%s: down_%d()", highest(n), n-ratioBits+1))
	}
	t.Line("")
	t.Table("highest", []string{of + " : ternary"}, names, entries, "down_0()")
}

// moves: a step is half of the limit's highest bit.
func (t *p4Text) moves() {
	t.Line("control AhabMove(in bit<32> limit, in bit<32> share, inout bit<32> by) {")
	var names, entries []string
	for n := 30; n >= leastBit; n-- {
		shift := n - 1 - 15
		op := fmt.Sprintf("<< %d", shift)
		if shift < 0 {
			op = fmt.Sprintf(">> %d", -shift)
		}
		t.Line("    action step_%d() { by = share %s; }", n-1, op)
		names = append(names, fmt.Sprintf("step_%d", n-1))
		if n > leastBit {
			entries = append(entries, fmt.Sprintf("%s: step_%d()", highest(n), n-1))
		}
	}
	t.Line("")
	t.Table("moves", []string{"limit : ternary"}, names, entries, fmt.Sprintf("step_%d()", leastBit-1))
}

// sum of what passes under a limit and under no lower one: number n of four. The packet that takes the sums away leaves its own part.
// Exact keys: the ingress's table of slices has all TCAM of the stage.
func (t *p4Text) sum(n int, name string) {
	control, register := "Ahab"+strings.ToUpper(name[:1])+name[1:], "ahab_"+name
	t.Line("control %s(in bit<8> epochs, in bit<16> low, in bit<16> mid, in bit<16> high, in slice_t place, in bit<32> amount, inout bit<32> sum) {", control)
	t.Line("    Register<bit<32>, slice_t>(AHAB_SLICES, 0) %s;\n", register)
	action := func(name, out, body string) {
		t.Line("    RegisterAction<bit<32>, slice_t, bit<32>>(%s) %s = {\n        void apply(inout bit<32> v%s) {\n%s        }\n    };\n", register, name, out, body)
	}
	action("add_part", "", "            v = v + amount;\n")
	action("take_leave", ", out bit<32> before", "            before = v;\n            v = amount;\n")
	action("take_all", ", out bit<32> before", "            before = v;\n            v = 0;\n")
	t.Line("    action add() { add_part.execute(place); }\n    action leave() { sum = take_leave.execute(place); }\n    action take() { sum = take_all.execute(place); }\n    action skip() {}\n")
	var entries []string
	for _, epochs := range []string{"NONE", "ONE", "TWO", "FOUR", "IDLE"} {
		for part, signs := range []string{"1, 1, 1", "0, 1, 1", "0, 0, 1", "0, 0, 0"} { // what passes under a limit passes under the higher ones
			switch {
			case epochs == "NONE" && part == n:
				entries = append(entries, fmt.Sprintf("(EPOCHS_%s, %s): add()", epochs, signs))
			case epochs != "NONE" && part == n:
				entries = append(entries, fmt.Sprintf("(EPOCHS_%s, %s): leave()", epochs, signs))
			case epochs != "NONE":
				entries = append(entries, fmt.Sprintf("(EPOCHS_%s, %s): take()", epochs, signs))
			}
		}
	}
	t.Table("parts", []string{"epochs : exact", "low[15:15] : exact", "mid[15:15] : exact", "high[15:15] : exact"},
		[]string{"add", "leave", "take", "skip"}, entries, "skip()")
}
