package hhh

import (
	"fmt"
	"math/bits"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/algo/p4text"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// The generated parts of the twin p4/hhh, besides those of heavy.Ways.
//
// params.p4
//
//	HHH_FIELDS  addresses whose prefixes are counted: 1 sources, 2 destinations, 3 pairs
//	drawn_t     what a level is drawn by
//
// tables.p4
//
//	control HhhLevel(in headers_t hdr, in drawn_t drawn, out bit<32> prefix, out bit<32> tag)
//	    the level of a packet, drawn in its first pass and contained in its clone, and the prefix of its address
//	control HhhSource, HhhDestination(in headers_t hdr, in drawn_t drawn, out bit<32> prefix, inout bit<32> tag)
//	    the same of pairs, each address with a level of its own, from 0. Five levels (nine of nibbles) are ranges of 32 bits, as prefixes.

// twinForms: the twin counts packets by IPv4 prefixes, at a random level. Stacking has another hash than CRC; IPv6 takes three words of key.
var twinForms = []algo.TwinForm{algo.Just("method", auto, "random-prefix"), algo.Just("family", "4"), algo.Just("count", "packets"), algo.Just("ways", "2"),
	algo.Just("admission", "9/8"), algo.Just("delay", "0"), algo.Just("exact8", auto, "off")}

// P4 implements algo.Twin.
func (c *config) P4() (map[string]string, error) {
	parts := c.ways.P4()
	width, text := bits.Len(uint(c.levels4-1)), &p4text.Text{}
	fields := c.ways.Spec.Fields
	if fields == heavy.Src|heavy.Dst {
		width = 32
		c.pairLevels(text, "HhhSource", "src", "level", 8)
		text.Line("")
		c.pairLevels(text, "HhhDestination", "dst", "other", 16)
	} else {
		c.levels(text, fields)
	}
	parts["params"] += fmt.Sprintf("#define HHH_FIELDS %d\ntypedef bit<%d> drawn_t;\n", fields, width)
	parts["tables"] += "\n" + text.String()
	return parts, nil
}

// levels of one address: a power of two, of which each is as likely.
func (c *config) levels(text *p4text.Text, fields heavy.Fields) {
	address, shift := "src", 8
	if fields == heavy.Dst {
		address, shift = "dst", 16
	}
	text.Line("control HhhLevel(in headers_t hdr, in drawn_t drawn, out bit<32> prefix, out bit<32> tag) {")
	var actions, entries []string
	for level := 1; level <= c.levels4; level++ {
		c.level(text, level, address, fmt.Sprintf("tag = %#x", level<<shift|1))
		actions = append(actions, fmt.Sprintf("level_%d", level))
		entries = append(entries, fmt.Sprintf("(false, %d, _): level_%d()", level-1, level), fmt.Sprintf("(true, _, %d): level_%d()", level, level))
	}
	levelTable(text, "level", actions, entries, "prefix = 0;\n        tag = 0")
}

// pairLevels of one address of a pair, from 0: the address counts whole, or in part, or not at all.
func (c *config) pairLevels(text *p4text.Text, control, address, carried string, shift int) {
	text.Line("control %s(in headers_t hdr, in drawn_t drawn, out bit<32> prefix, inout bit<32> tag) {", control)
	var actions, entries []string
	n := uint64(c.levels4 + 1)
	for level := range n {
		c.level(text, int(level), address, fmt.Sprintf("tag[%d:%d] = %d", shift+7, shift, level))
		actions = append(actions, fmt.Sprintf("level_%d", level))
		entries = append(entries, fmt.Sprintf("(true, _, %d): level_%d()", level, level))
		for low, end := (level<<32+n-1)/n, ((level+1)<<32+n-1)/n; low < end; {
			size := uint64(1) << min(bits.TrailingZeros64(low|1<<32), bits.Len64(end-low)-1)
			entries = append(entries, fmt.Sprintf("(false, 32w%#x &&& 32w%#x, _): level_%d()", low, 1<<32-size, level))
			low += size
		}
	}
	levelTable(text, carried, actions, entries, "prefix = 0")
}

// level is an action.
func (c *config) level(text *p4text.Text, level int, address, tag string) {
	text.Line("    action level_%d() {\n        prefix = hdr.ipv4.%s & 32w%#08x;\n        %s;\n    }\n", level, address, ^uint32(0)<<(32-level*c.step), tag)
}

func levelTable(text *p4text.Text, carried string, actions, entries []string, begin string) {
	text.Line("    table levels {\n        key = {\n            hdr.second.isValid() : ternary;\n            drawn : ternary;\n            hdr.second.%s : ternary;\n        }", carried)
	text.Line("        actions = {")
	for _, a := range actions {
		text.Line("            %s;", a)
	}
	text.Line("        }\n        const entries = {")
	for _, e := range entries {
		text.Line("            %s;", e)
	}
	text.Line("        }\n        const default_action = %s();\n        size = %d;\n    }\n\n    apply {\n        %s;\n        levels.apply();\n    }\n}", actions[len(actions)-1], len(entries), begin)
}
