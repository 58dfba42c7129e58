package lean

import (
	_ "embed"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/algo/p4text"
	"github.com/xdpmon/xdpmon/userspace/lean/entries"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
)

// twinP is the share of segments that a switch follows until its control plane has measured the load. The eBPF form starts with
// all.
const twinP = 1.0 / 32

// twinLimit is the value at which a flow is reported until the control plane sets a limit: every flow is reported, as on a host
// with few flows.
const twinLimit = 1

// twinForms: the twin has the four statistics of IPv4 in one form each.
var twinForms = []algo.TwinForm{algo.Just("latency", "matched"), algo.Just("loss", "gaps"), algo.Just("loss.id", "ipid"), algo.Just("ooo", "sketch"),
	algo.Just("retrans", "sequence"), algo.Just("key", "5tuple"), algo.Just("count", "packets"), algo.Just("agree", "3"),
	algo.Just("memory", "40kB"), algo.Just("by", "count")}

// P4 implements algo.Twin: it generates the sizes that the twin shares with the eBPF form, and the tables and controls that repeat for every row of a
// sketch and every array of a filter.
func (c *config) P4() (map[string]string, error) {
	if c.buckets > 0 {
		if err := c.complete(); err != nil {
			return nil, err
		}
	} else if len(c.on) != int(stats) {
		return nil, c.values.NoForm("stat", "all four; choose at compile time with -D LEAN_STATS=MASK")
	}
	odds, err := c.twinChance()
	if err != nil {
		return nil, err
	}
	return map[string]string{"params": c.twinParams(odds), "tables": c.twinTables(odds)}, nil
}

// complete adds the sizes of statistics that are off, which the program's text has as well.
func (c *config) complete() error {
	for s := range stats {
		if c.statistics[s] != nil {
			continue
		}
		off, err := newStatistic(s, c.values, true)
		if err != nil {
			return err
		}
		c.layouts[s] = off.layout(1)
	}
	return nil
}

// twinChance is lean.p as a switch can draw it, by some bits of a hash, and the weights of delays that apply until the rate of
// insertions is known.
func (c *config) twinChance() (*chance, error) {
	v := c.values
	odds, err := newChance(v)
	if err != nil {
		return nil, err
	}
	if odds.auto {
		odds.p = twinP
	}
	if frac, _ := math.Frexp(odds.p); frac != 0.5 {
		return nil, v.NoForm("p", "auto, or a power of two from 1/1024 to 1")
	}
	odds.slots = c.layouts[latency].tables["lean_lat_fr"]
	return odds, nil
}

// luck masks the bits of a segment's hash that have to be 0: the upper ones of 16, as the eBPF form compares them with p.
func (c *chance) luck() uint16 { return ^uint16(math.Round(c.p*(1<<16)) - 1) }

// twinStat is a statistic as the generated parts name it.
type twinStat struct {
	stat
	name    string // in registers: lean_NAME_0
	control string // in controls: LeanNAME0
	valued  bool   // an event's value is not always 1
}

var twinStats = []twinStat{{latency, "lat", "Lat", true}, {loss, "loss", "Loss", true}, {ooo, "ooo", "Ooo", false}, {retrans, "ret", "Ret", false}}

func index(entries int) int { return bits.Len(uint(entries - 1)) }

// twinParams are entries of both banks, and the types of indices.
func (c *config) twinParams(odds *chance) string {
	text := p4text.New("params", "lean")
	line := text.Line
	line("#ifndef LEAN_STATS\n#define LEAN_STATS %d /* latency 1, loss 2, ooo 4, retrans 8 */\n#endif", c.mask())
	line("#define LEAN_LIMIT %d /* until the control plane sets another */", twinLimit)
	for _, s := range twinStats {
		l, upper := c.layouts[s.stat], strings.ToUpper(s.name)
		line("#define LEAN_%s_CELLS %d", upper, 2*l.columns)
		line("#define LEAN_%s_WORDS %d", upper, 2*l.filter)
		line("typedef bit<%d> %s_cell_t;", index(2*l.columns), s.name)
		line("typedef bit<%d> %s_word_t;", index(2*l.filter), s.name)
		line("#define LEAN_%s_COLUMN %d /* highest bit of a column */", upper, index(l.columns)-1)
	}
	if c.buckets > 0 {
		line("#define LEAN_BITS /* keys from bits */\n#define LEAN_BITS_CELLS %d\n#define LEAN_BUCKET %d /* highest bit of a hash that is a bucket */",
			2*c.buckets*bitsBucket, 16+index(c.buckets)-1)
		line("typedef bit<%d> bits_cell_t;\ntypedef bit<%d> bit_number_t;", index(2*c.buckets*bitsBucket), index(bitsBucket))
	}
	tables := c.layouts[ooo].tables
	line("#define LEAN_TWIN %d", tables["lean_twin"])
	line("#define LEAN_OOO_WAY %d\ntypedef bit<%d> ooo_slot_t;", tables["lean_ooo_way0"], index(tables["lean_ooo_way0"]))
	line("#define LEAN_OOO_RECORDS %d\ntypedef bit<%d> ooo_index_t;", tables["lean_ooo_max"], index(tables["lean_ooo_max"]))
	tables = c.layouts[retrans].tables
	line("#define LEAN_RET_WAY0 %d\ntypedef bit<%d> ret_slot0_t;", tables["lean_ret_way0"], index(tables["lean_ret_way0"]))
	line("#define LEAN_RET_WAY1 %d\ntypedef bit<%d> ret_slot1_t;", tables["lean_ret_way1"], index(tables["lean_ret_way1"]))
	line("#define LEAN_RET_RECORDS %d\ntypedef bit<%d> ret_index_t;", tables["lean_ret_max"], index(tables["lean_ret_max"]))
	tables = c.layouts[loss].tables
	line("#define LEAN_LOSS_FLOWS %d\ntypedef bit<%d> loss_slot_t;", tables["lean_loss_last"], index(tables["lean_loss_last"]))
	tables = c.layouts[latency].tables
	line("#define LEAN_LAT_SLOTS %d\ntypedef bit<%d> lat_slot_t;", tables["lean_lat_fr"], index(tables["lean_lat_fr"]))
	line("#define LEAN_LUCK %#x /* a segment is followed when these bits of its hash are 0 */", odds.luck())
	return text.String()
}

func (c *config) twinTables(odds *chance) string {
	var b strings.Builder
	b.WriteString(p4text.Head("tables", "lean"))
	parts.Write(&b, "stage", nil)
	if c.buckets == 0 {
		b.WriteString(entries.Reports(int(stats)))
	}
	parts.Write(&b, "lengths", p4text.Values{"Bases": strings.Join(entries.Lengths(), "\n"), "Kinds": strings.Join(entries.Kinds(), "\n")})
	if c.buckets == 0 {
		parts.Write(&b, "mask", p4text.Values{"Entries": strings.Join(entries.Masks(), "\n")})
	}
	parts.Write(&b, "step", p4text.Values{"Entries": strings.Join(entries.Steps(lossSmall), "\n")})
	values := odds.valueEntries()
	parts.Write(&b, "value", p4text.Values{"Entries": strings.Join(values, "\n"), "Size": len(values)})
	parts.Write(&b, "signed", nil)
	for _, s := range twinStats {
		for r := range sketch.Rows {
			s.row(&b, r, r < sketch.Rows-1 && c.buckets == 0)
		}
		for f := range 2 {
			if c.buckets == 0 {
				s.filter(&b, f)
			}
		}
	}
	if c.buckets > 0 {
		twinStats[c.on[0]].bits(&b)
	}
	return b.String()
}

// lossSmall is LOSS_SMALL of bpf/lean/loss.h.
const lossSmall = 64

// delayPrefix is a bin of delays, the same as the eBPF form's, as an entry. Bin 0 is no delay.
func delayPrefix(bin int) Ternary {
	low, high := delayBins.Range(bin)
	return Ternary{uint32(low), ^uint32(0) << bits.TrailingZeros64(uint64(high-low))}
}

func (c *chance) valueEntries() (list []string) {
	for bin := 1; bin < delayBins.Len(); bin++ {
		at := delayPrefix(bin)
		list = append(list, fmt.Sprintf("            32w%#x &&& 32w%#x: weigh(%d);", at.Value, at.Mask, c.worthOf(bin).more))
	}
	return list
}

// Stages of rows and filters when all four statistics are compiled: the rows of a statistic in consecutive stages, then the
// filters of two statistics in each stage, and last the fifth rows, on whose result nothing depends.
var (
	rowStage    = [stats]int{latency: 8, loss: 6, ooo: 5, retrans: 7}
	filterStage = [stats]int{latency: 10, loss: 9, ooo: 9, retrans: 10}
)

const lastStage = 11

//go:embed tables.p4.tmpl
var tablesText string

// parts are the controls of tables.p4.
var parts = p4text.ReadParts(tablesText)

// row is the control of one row of a sketch, whose estimate the pipeline may read.
func (s twinStat) row(b *strings.Builder, r int, read bool) {
	t := s.cells()
	t["Stage"], t["Row"], t["Register"], t["At"] = 5+r, r, fmt.Sprintf("%s_%d", s.name, r), rowStage[s.stat]
	if read {
		parts.Write(b, "row", t)
		return
	}
	t["What"] = fmt.Sprintf("row %d of %s", r, s.stat)
	if r == sketch.Rows-1 {
		t["At"] = lastStage
	}
	parts.Write(b, "unreadRow", t)
}

// bits are the controls of keys from bits: a bit's sub-bucket is added to as the cell of a row is.
func (s twinStat) bits(b *strings.Builder) {
	ones := entries.Ones(bitsCheck, bitsUsed)
	parts.Write(b, "key", p4text.Values{"Bits": bitsUsed, "Ranges": strings.Join(entries.Ranges(bitsUsed), "\n"), "Ones": strings.Join(ones, "\n"), "Size": len(ones)})
	t := s.cells()
	t["Stage"], t["What"], t["Control"], t["Row"], t["Name"], t["Upper"], t["Register"], t["At"] = 10, "sub-buckets of the key's bits", "Bits", "", "bits", "BITS", "bits", lastStage
	parts.Write(b, "unreadRow", t)
}

// cells are what rows and sub-buckets of a statistic have in common: from which events a cell is added to or subtracted from.
func (s twinStat) cells() p4text.Values {
	value, in, key, above := "1", "in found_t found", "            found : ternary;\n", " - 1"
	plus, minus := "v >= least", "v <= most"
	list := "            (FOUND, 0): plus();\n            (FOUND, 1): minus();\n"
	switch {
	case s.valued:
		value, in, key, above = "value", "in bit<32> value", "            value : ternary;\n", ""
		plus, minus = "(int<64>)(v + (int<32>)value) >= (int<64>)least", "(int<64>)(v - (int<32>)value) <= (int<64>)most" // "signed"
		list = "            (0, _): skip();\n            (_, 0): plus();\n            (_, 1): minus();\n"
	case s.stat == retrans:
		in, key = in+", in bit<32> below", key+"            below : ternary;\n"
		list = "            (FOUND, _, 0): plus();\n            (FOUND, _, 1): minus();\n            (_, 0, _): skip();\n" +
			"            (_, 0 &&& 0xfc000000, 0): plus();\n            (_, 0 &&& 0xfc000000, 1): minus();\n"
	}
	return p4text.Values{"Title": s.stat, "Control": s.control, "In": in, "Name": s.name, "Upper": strings.ToUpper(s.name),
		"Above": above, "Plus": plus, "Minus": minus, "Value": value, "Key": key, "Entries": list}
}

// filter is the control of one array of the Bloom filter.
func (s twinStat) filter(b *strings.Builder, f int) {
	parts.Write(b, "filter", p4text.Values{"Stage": 10 + f, "Row": f, "Title": s.stat, "Control": s.control, "Name": s.name, "Upper": strings.ToUpper(s.name),
		"Register": fmt.Sprintf("%s_b_%d", s.name, f), "At": filterStage[s.stat], "Before": map[bool]string{true: "LEAN_LOSS_FILTERS "}[s.stat == loss]})
}
