package fridge

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/group"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
)

// config is the parsed and checked form of the parameters.
type config struct {
	values   algo.Values
	parts    []layout.Part
	slots    int // of all parts, where their probabilities follow load and delays; 0: they do not
	rules    delay.Rules
	group    group.Group
	rows     int // of the histograms
	sla      *delay.Agreement
	combine  string
	recorded bool
	table    bool
	samples  int   // the slowest that are listed by connection; 0: none is sent
	mantissa int   // delay bins an octave: 2^mantissa
	tick     int64 // ns
}

func newConfig(v algo.Values, _ algo.Setup) (*config, error) {
	c := &config{values: v, samples: int(v.Int("samples")), combine: v.Text("combine"), recorded: v.Text("counter") == "recorded"}
	for _, read := range []func(algo.Values) error{c.readParts, c.readRules, c.readGroup, c.readTick, c.readLegs, c.readResolution} {
		if err := read(v); err != nil {
			return nil, err
		}
	}
	return c, c.check(v)
}

func (c *config) readParts(v algo.Values) (err error) {
	if c.parts, c.slots, err = layout.Read(v.Text("fridges")); err != nil {
		return v.Error("fridges", err.Error())
	}
	if err := layout.Shard(c.parts, v.Text("shards")); err != nil {
		return v.Error("shards", err.Error())
	}
	return nil
}

func (c *config) readRules(v algo.Values) (err error) {
	if c.rules.Kind, err = delay.ParseKind(v.Text("match")); err != nil {
		return v.Error("match", err.Error())
	}
	if c.rules.Side, err = delay.ParseSide(v.Text("side")); err != nil {
		return v.Error("side", err.Error())
	}
	c.rules.Restart = restarts(v.Text("retransmit"), c.rules.Kind)
	return nil
}

// restarts reports whether a repeated request restarts its clock. auto: yes, except for tcp-timestamp, where several segments
// with one TSval are no repetition: the echo answers the first of them.
func restarts(mode string, kind delay.Kind) bool {
	if mode == auto {
		return kind != delay.TCPTimestamp
	}
	return mode == "restart"
}

func (c *config) readGroup(v algo.Values) (err error) {
	if c.group, err = group.Parse(v.Text("group"), int(v.Int("group6"))); err != nil {
		return v.Error("group", err.Error())
	}
	c.rows = 1
	if c.group.Kind != group.None {
		c.rows = int(v.Int("rows"))
	}
	if c.sla, err = delay.ParseAgreement(v.Text("sla")); err != nil {
		return v.Error("sla", err.Error())
	}
	return nil
}

func (c *config) readTick(v algo.Values) error {
	c.tick = c.rules.Kind.TickNS()
	if text := v.Text("tick"); text != auto {
		d, err := time.ParseDuration(text)
		if err != nil || d < 1 || d > 1<<20 || d&(d-1) != 0 {
			return v.Error("tick", "allowed are auto and powers of two from 1ns to 1.048576ms: 64ns, 1.024us, 65.536us")
		}
		c.tick = int64(d)
	}
	c.rules.Longest = c.tick<<delay.Bits - 1
	return nil
}

func (c *config) readLegs(v algo.Values) error {
	possible := c.rules.Kind == delay.TCPHandshake && c.group.Kind == group.None && c.recorded
	switch v.Text("legs") {
	case auto:
		c.rules.Finals = possible
	case "true":
		if !possible {
			return v.Error("legs", "legs need match=tcp-handshake, group=none and counter=recorded")
		}
		c.rules.Finals = true
	}
	if c.rules.Finals {
		c.rows = 2
	}
	return nil
}

// readResolution chooses the histogram. auto is the finest one that fits a pipeline stage; with groups, whose many rows take
// memory, the data plane adds up weights from the table.
func (c *config) readResolution(v algo.Values) error {
	correction, text := v.Text("correction"), v.Text("resolution")
	c.table = correction == "table" || correction == auto && (c.grouped() || c.follows()) && c.recorded
	if text != auto {
		c.mantissa = bits.Len(uint(v.Int("resolution"))) - 1
		return nil
	}
	c.refine()
	return nil
}

// refine chooses the finest bins that fit.
func (c *config) refine() {
	for c.mantissa = finest; c.mantissa > coarsest && !c.fitsStage(); {
		c.mantissa--
	}
}

// Delay bins an octave: 2^2 to 2^5.
const (
	coarsest = 2
	finest   = 5
)

// mostSlots is how many 64-bit slots one array of the switch holds: loader/pisa refuses to load more.
const mostSlots = declared.ArrayBlocks * declared.BlockBits / 64

// histogramStages are the arrays of stages 5 and 6.
var histogramStages = [][]string{{"fridge_hist", "fridge_hits", "fridge_second", "fridge_repeats"}, {"fridge_sizes", "fridge_lengths", "fridge_shut"}}

// fitsStage reports whether the histograms fit their stages.
func (c *config) fitsStage() bool {
	sizes := c.sizes()
	for _, stage := range histogramStages {
		total := 0
		for _, name := range stage {
			if sizes[name] == 1 {
				continue // not used: removed from the program
			}
			blocks := (2*64*sizes[name] + declared.BlockBits - 1) / declared.BlockBits
			if blocks > declared.ArrayBlocks {
				return false
			}
			total += blocks + 1
		}
		if total > declared.StageMapRAM {
			return false
		}
	}
	return true
}

func (c *config) check(v algo.Values) error {
	if !c.recorded && c.table {
		return v.Error("correction", "the table is looked up by survived insertions: it needs counter=recorded")
	}
	if err := c.checkAuto(v); err != nil {
		return err
	}
	if !c.recorded && c.rules.Kind == delay.TCPDuration {
		return v.Error("counter", "the volume of a flow can only be corrected with counter=recorded")
	}
	if c.rules.Side != delay.AnySide && c.rules.Kind != delay.TCPData && c.rules.Kind != delay.TCPTimestamp {
		return v.Error("side", "only tcp-data and tcp-timestamp know sides: match="+c.rules.Kind.String()+" needs side=any")
	}
	if !c.fitsStage() {
		return v.Error("rows", fmt.Sprintf("%d rows for %d fridges with %d delay bins an octave do not fit a pipeline stage: take fewer rows, "+
			"fewer fridges, a smaller fridge.resolution, or fridge.correction=table", c.rows, len(c.parts), 1<<c.mantissa))
	}
	return nil
}

// scale of the delays.
func (c *config) scale() delay.Scale { return delay.NewScale(c.mantissa, float64(c.tick), false) }

// counts is the scale of bytes and packets.
func (c *config) counts() delay.Scale { return delay.NewScale(c.mantissa, 1, true) }

// plane is the number of cells of one row and fridge.
func (c *config) plane() int {
	n := c.scale().Bins.Len()
	if !c.table && c.recorded {
		n *= delay.SurvivalBins
	}
	return n
}

// constants of the program.
func (c *config) constants() map[constant.Name]any {
	mask4, mask6 := c.group.Masks()
	return map[constant.Name]any{
		constant.FridgeParts:      layout.Of(c.parts),
		constant.FridgeCount:      uint32(len(c.parts)),
		constant.FridgeTick:       uint32(bits.TrailingZeros64(uint64(c.tick))),
		constant.FridgeMantissa:   uint32(c.mantissa),
		constant.FridgeRecorded:   c.recorded,
		constant.FridgeRestart:    c.rules.Restart,
		constant.FridgeTable:      c.table,
		constant.FridgeGroup:      uint32(c.group.Kind),
		constant.FridgeRows:       uint32(c.rows),
		constant.FridgeSamples:    c.samples > 0,
		constant.FridgeAuto:       c.follows(),
		constant.FridgeGroupMask4: mask4,
		constant.FridgeGroupMask6: mask6,
		constant.MatchRule:        uint32(c.rules.Kind),
		constant.MatchSide:        uint32(c.rules.Side),
		constant.MatchFinals:      c.rules.Finals,
	}
}

// sizes of the arrays. An array that the matching rule does not use has one entry.
func (c *config) sizes() map[string]int {
	slots, shards := layout.Totals(c.parts)
	plane := c.planes() * c.plane()
	used := func(n int, yes bool) int {
		if yes {
			return n
		}
		return 1
	}
	duration := c.rules.Kind == delay.TCPDuration
	return map[string]int{
		"fridge_entries":  slots,
		"fridge_inserts":  used(shards, c.recorded),
		"fridge_survived": used(slots, c.recorded),
		"fridge_middle":   used(slots, c.rules.Finals),
		"fridge_volume":   used(slots, duration),
		"fridge_groups":   used(c.rows, c.group.Kind != group.None),
		"fridge_hist":     c.rows * plane,
		"fridge_hits":     used(c.rows*plane, c.table),
		"fridge_second":   used(plane, c.rules.Finals),
		"fridge_repeats":  len(c.parts) * delay.RepeatBins.Len(),
		"fridge_sizes":    used(plane, duration),
		"fridge_lengths":  used(plane, duration),
		"fridge_shut":     used(c.rows, c.shuts() && c.grouped()),
		"fridge_sent":     1,
	}
}

// registerBytes is the memory of the arrays as declared: both banks where an array has banks, all CPUs where it is per CPU.
func (c *config) registerBytes(cpus int) int64 {
	width := map[string]int64{"fridge_entries": 8, "fridge_inserts": 4, "fridge_survived": 4, "fridge_middle": 4, "fridge_volume": 8, "fridge_sent": 8,
		"fridge_groups": 2 * 8}
	var total int64
	for name, n := range c.sizes() {
		w, shared := width[name]
		if !shared {
			w = 2 * 8 * int64(cpus)
		}
		total += w * int64(n)
	}
	return total
}

// configure writes constants and sizes into the object.
func (c *config) configure(spec *ebpf.CollectionSpec) error {
	if err := maps.SetConstants(spec, c.constants()); err != nil {
		return err
	}
	for name, n := range c.sizes() {
		if err := maps.SetEntries(spec, name, uint32(n)); err != nil {
			return err
		}
	}
	return c.sampling().Configure(spec)
}

// needs of the parser.
func (c *config) needs() maps.Need { return c.rules.Kind.Needs() }
