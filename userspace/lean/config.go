package lean

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/limit"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
)

const (
	baseMemory   = 40_000 // bytes of a statistic: the paper's 5 x 2000 x 32 bits
	maxScale     = 16
	usualWindow  = 60_000_000_000 // ns
	replayRing   = 4 << 20
	widestFilter = 2048  // words: 16 bits of hash
	widestRow    = 32768 // columns: 15 bits
)

// config is the parsed and checked form of the parameters.
type config struct {
	values     algo.Values
	on         []stat
	statistics [stats]statistic // nil: off
	layouts    [stats]layout
	spec       heavy.Spec
	pair       bool
	bytes      bool
	rate       bool // flows are ranked by rate
	least      int  // by rate: packets of a listed flow
	agree      uint32
	budget     int // candidates a window and statistic
	share      int // log2 of budget
	top        int
	ring       int64
	windowNS   int64
	buckets    int // with keys=bits; else 0
}

func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	c := &config{
		values: v,
		bytes:  v.Text("count") == "bytes", pair: v.Text("key") == "pair", agree: uint32(v.Int("agree")), budget: int(v.Int("candidates")),
		rate: v.Text("by") == "rate", least: int(v.Int("least")), top: int(v.Int("top")), ring: v.Bytes("ring"), windowNS: setup.WindowNS,
	}
	if c.windowNS == 0 {
		c.windowNS = usualWindow
	}
	if c.share = bits.Len(uint(c.budget)) - 1; c.budget != 1<<c.share {
		return nil, v.Error("candidates", "allowed are powers of two from 16 to 65536")
	}
	if c.ring&(c.ring-1) != 0 {
		return nil, v.Error("ring", "allowed are powers of two from 4KiB to 1GiB")
	}
	if setup.Replay {
		c.ring = max(c.ring, replayRing)
	}
	kind := "5tuple"
	if c.pair {
		kind = "srcdst"
	}
	fields, err := heavy.ParseKind(kind)
	if err != nil {
		return nil, err
	}
	c.spec = heavy.Spec{Fields: fields}
	return c, c.choose(v, setup)
}

// choose configures the statistics that lean.stat names.
func (c *config) choose(v algo.Values, setup algo.Setup) (err error) {
	scale := scaleOf(v.Bytes("memory"))
	for name := range strings.SplitSeq(v.Text("stat"), ",") {
		s := stat(slices.Index(statNames[:], strings.TrimSpace(name)))
		if s < 0 {
			return v.Error("stat", "a list of "+strings.Join(statNames[:], ", "))
		}
		if c.statistics[s] != nil {
			continue
		}
		if c.statistics[s], err = newStatistic(s, v, setup.Hash == algo.HashCRC); err != nil {
			return err
		}
		c.on = append(c.on, s)
		c.layouts[s] = bounded(c.statistics[s].layout(scale))
		if c.rate {
			c.layouts[s] = rateLayout(s, scale)
		}
	}
	slices.Sort(c.on)
	if c.rate {
		return defaultForms(v)
	}
	if v.Text("keys") == "bits" {
		return c.chooseBits(v, scale)
	}
	if c.mean() && c.statistics[retrans] != nil {
		return v.Error("mean", "true without retrans in lean.stat, whose rows it takes")
	}
	return nil
}

// chooseBits divides the memory with the sub-buckets: half of the columns and the whole filter go to 32 buckets of 128 cells.
func (c *config) chooseBits(v algo.Values, scale float64) error {
	if len(c.on) != 1 || c.walks(c.on[0]) || c.mean() {
		return v.Error("keys", "bits with one statistic in lean.stat, in its default form, and without lean.mean")
	}
	l := &c.layouts[c.on[0]]
	l.columns, l.filter, c.buckets = max(l.columns/2, 1), 1, power(32*scale)
	return nil
}

// scaleOf is memory / baseMemory, rounded down to a power of two.
func scaleOf(memory int64) float64 {
	scale := 1.0
	for ; memory >= int64(2*scale*baseMemory) && scale < maxScale; scale *= 2 {
	}
	for ; memory < int64(scale*baseMemory) && scale > 1.0/16; scale /= 2 {
	}
	return scale
}

func bounded(l layout) layout {
	l.columns, l.filter = min(l.columns, widestRow), min(l.filter, widestFilter)
	return l
}

// power is the largest power of two at or below x.
func power(x float64) int {
	if x < 1 {
		return 1
	}
	return 1 << (bits.Len64(uint64(x)) - 1)
}

func (c *config) mask() (mask uint32) {
	for _, s := range c.on {
		mask |= 1 << s
	}
	return mask
}

// constants of the program.
func (c *config) constants() map[constant.Name]any {
	all := map[constant.Name]any{
		constant.LeanStats:    c.mask(),
		constant.LeanPair:     c.pair,
		constant.LeanBytes:    c.bytes,
		constant.LeanAgree:    c.agree,
		constant.LeanAbsolute: c.absolute(),
		constant.LeanBitsOn:   c.buckets > 0,
		constant.LeanRateOn:   c.rate,
	}
	for _, s := range c.on {
		maps.Copy(all, c.statistics[s].constants(c.layouts[s]))
	}
	return all
}

// walker is a statistic in a form whose sums are random walks: they may be negative, and every flow leaves a residue in the
// sketch.
type walker interface{ walks() bool }

// walks reports whether a statistic's estimates may be negative.
func (c *config) walks(s stat) bool {
	w, ok := c.statistics[s].(walker)
	return ok && w.walks()
}

func (c *config) absolute() (mask uint32) {
	for _, s := range c.on {
		if c.walks(s) {
			mask |= 1 << s
		}
	}
	return mask
}

// walkShare is log2 of the divisor: a walk is reported when its distance from 0 exceeds the steps of all flows / 2^walkShare;
// with 7 M packets, 6 steps.
const walkShare = 20

func (c *config) limiter(s stat) *limit.Limiter {
	if c.walks(s) {
		return limit.Fixed(c.budget, walkShare)
	}
	if r, ok := c.statistics[s].(*repetitions); ok && r.distinct { // the sketch finds elephants, which have their share of the packets from the start
		share := bits.Len(uint(c.layouts[s].tables["lean_ret_list"])) - 1
		return limit.Fixed(c.budget, share)
	}
	return limit.New(c.budget, c.share)
}

// rowNames and filterNames are the registers of a statistic.
func rowNames(register string) (names [sketch.Rows]string) {
	for r := range sketch.Rows {
		names[r] = fmt.Sprintf("%s_%d", register, r)
	}
	return names
}

func filterNames(register string) []string { return []string{register + "_b_0", register + "_b_1"} }

// registers of all statistics; those of a statistic that is off are sized to one entry.
var registers = [stats]string{"lean_lat", "lean_loss", "lean_ooo", "lean_ret"}

// meanRegister is the stem of the sketch that counts delays: that of retrans, which is off then.
const meanRegister = "lean_ret"

// mean reports whether delays are counted in addition to their sum.
func (c *config) mean() bool {
	l, ok := c.statistics[latency].(*latencies)
	return ok && l.mean
}

// sizes of the registers.
func (c *config) sizes() map[string]int {
	sizes := map[string]int{}
	for s := range stats {
		l := c.layouts[s]
		for _, name := range rowNames(registers[s]) {
			sizes[name] = max(l.columns, 1)
		}
		for _, name := range filterNames(registers[s]) {
			sizes[name] = max(l.filter, 1)
		}
		maps.Copy(sizes, l.tables)
	}
	if c.mean() {
		for _, name := range rowNames(meanRegister) {
			sizes[name] = c.layouts[latency].columns
		}
	}
	sizes["lean_bits"] = max(c.buckets*bitsBucket, 1)
	for _, name := range ownTables {
		sizes[name] = max(sizes[name], 1)
	}
	return sizes
}

// used is the memory of one bank of the enabled statistics, in bytes.
func (c *config) used() (n int) {
	for _, s := range c.on {
		n += c.layouts[s].bytes()
	}
	n += 4 * c.buckets * bitsBucket
	if c.mean() {
		n += 4 * sketch.Rows * c.layouts[latency].columns
	}
	return n
}
