package hhh

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// fullPacket is an initial value of one packet, in bytes.
const fullPacket = 1500

type config struct {
	ways      heavy.Ways
	stacking  bool
	whole     bool // keys are whole addresses
	exact     int  // random-prefix and whole: levels of up to 8 bits that are counted exactly; 0: none
	bytes     bool
	step      int // bits of a level
	levels4   int // below the root
	levels6   int
	threshold float64
	budget    float64
	passes    float64 // maximum of second passes per second for an adapting initial value
	delay     int
	top       int
}

var steps = map[string]int{"byte": 8, "nibble": 4, "bit": 1}

var dimensions = map[string]heavy.Fields{"src": heavy.Src, "dst": heavy.Dst, "both": heavy.Src | heavy.Dst}

func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	c := &config{stacking: v.Text("method") == "stacking", bytes: v.Text("count") == "bytes", step: 8, threshold: v.Float("threshold"),
		budget: v.Float("recirculation"), passes: v.Float("passes"), delay: int(v.Int("delay")), top: int(v.Int("top"))}
	c.whole = v.Text("method") == "whole"
	c.step = steps[v.Text("level")]
	c.levels4, c.levels6 = 32/c.step, int(v.Int("bits6"))/c.step
	spec := heavy.Spec{Fields: dimensions[v.Text("dimension")], Family: heavy.ParseFamily(v.Text("family")), Tagged: true}
	c.ways.Spec = spec
	if v.Text("method") == auto {
		c.stacking = c.stackable() == nil && spec.Family != heavy.Both && setup.Hash != algo.HashCRC
		c.whole = c.step == 1 && setup.Hash != algo.HashCRC
	}
	if c.stacking && spec.Family == heavy.Both {
		spec.Family = heavy.IPv4
	}
	if exact := v.Text("exact8"); exact == "on" || exact == auto && setup.Hash != algo.HashCRC && c.firstable() == nil {
		c.exact = exactBits / c.step
	}
	c.ways = heavy.Ways{Prefix: Name, Spec: spec, Words: spec.Words(), Count: int(v.Int("ways")), Entries: int(v.Int("entries")),
		Admission: heavy.ParseAdmission(v.Text("admission")), Subtract: true, Noted: setup.Hash != algo.HashCRC}
	if err := c.readInitial(v, setup); err != nil {
		return nil, err
	}
	if c.budget == 0 {
		c.budget = 1
		if !c.ways.Adapts && !((c.stacking || c.whole) && v.Text("initial") == auto) {
			c.budget = min(1, 2*float64(c.instances())/float64(c.ways.Initial+1))
		}
	}
	c.ways.Initial *= uint64(c.unitOfInitial())
	return c, c.check(v, setup)
}

// auto is the value of hhh.initial that follows the load, and of hhh.method that selects the one with the smaller error.
const auto = "auto"

const (
	switchInitial = 100
	mostInitial   = 1_000_000
	// stackedEntries is the maximum for which stacking starts with 1: N packets lead to sqrt(2 N E) second passes in E entries at most, 2.9 % of a million
	// packets a second in windows of 10 s. More entries start with more.
	stackedEntries = 4096
)

// readInitial: for stacking, whole keys and a switch (hashes with CRC) it is compiled in.
func (c *config) readInitial(v algo.Values, setup algo.Setup) (err error) {
	switch text := v.Text("initial"); {
	case text == auto && setup.Hash == algo.HashCRC:
		c.ways.Initial = switchInitial
	case text == auto && c.whole: // the number of second passes grows with the logarithm of the packets'
		c.ways.Initial = 0
	case text == auto && c.stacking:
		c.ways.Initial = uint64(max(1, c.ways.Entries/stackedEntries))
	case text == auto:
		c.ways.Initial, c.ways.Adapts = 1, true
	default:
		if c.ways.Initial, err = strconv.ParseUint(text, 10, 64); err != nil || c.ways.Initial > mostInitial {
			return v.Error("initial", fmt.Sprintf("allowed are auto and numbers from 0 to %d", mostInitial))
		}
	}
	return nil
}

// unitOfInitial is the initial value of one packet.
func (c *config) unitOfInitial() float64 {
	if c.bytes {
		return fullPacket
	}
	return 1
}

// maxStack is STACK_LEVELS of bpf/hhh: levels of stacking that are not exact.
const maxStack = 7

// exactBits of an address, and shorter prefixes, are counted exactly in stacking, and in the other methods if config.exact is set.
const exactBits = 8

// isExact: a prefix that is counted exactly.
func (c *config) isExact(p heavy.Prefix) bool {
	return p.Bits() == 0 || p.Bits() <= exactBits && (c.stacking || c.exact > 0)
}

// firstable returns why prefixes of 8 bits cannot be counted exactly in random-prefix; nil if they can.
func (c *config) firstable() error {
	switch {
	case c.stacking:
		return errors.New("stacking always does")
	case c.ways.Spec.Fields == heavy.Src|heavy.Dst:
		return errors.New("256 counters are of one address: choose a dimension")
	case c.levels6*c.step <= exactBits && c.ways.Spec.Family != heavy.IPv4:
		return fmt.Errorf("no level of IPv6 is left above hhh.bits6 = %d", c.levels6*c.step)
	}
	return nil
}

// stackFirst is the shortest prefix that is not exact.
func (c *config) stackFirst() int { return exactBits + c.step }

// stackLevels is how many levels of stacking are not exact.
func (c *config) stackLevels() int {
	longest := c.levels4 * c.step
	if c.ways.Spec.Family == heavy.IPv6 {
		longest = c.levels6 * c.step
	}
	return (longest - exactBits) / c.step
}

func (c *config) instances() int {
	if c.stacking {
		return max(c.stackLevels(), 1)
	}
	return 1
}

// stackable returns why stacking is impossible; nil if it is possible.
func (c *config) stackable() error {
	if c.ways.Spec.Fields == heavy.Src|heavy.Dst {
		return errors.New("stacking counts one address: an instance for every pair of levels does not fit 20 stages. Choose random-prefix or whole")
	}
	if n := c.stackLevels(); n < 1 || n > maxStack {
		return fmt.Errorf("stacking supports 1 to %d levels above %d bits, %d are asked for: IPv4 in bytes or nibbles, "+
			"IPv6 (hhh.family=6) in bytes with hhh.bits6 up to 64 or in nibbles up to 36. Choose random-prefix or whole for more", maxStack, exactBits, n)
	}
	return nil
}

func (c *config) check(v algo.Values, setup algo.Setup) error {
	if c.stacking {
		if err := c.stackable(); err != nil {
			return v.Error("method", err.Error())
		}
	}
	if c.whole && setup.Hash == algo.HashCRC {
		return v.Error("method", "a switch has no whole keys (docs/twins.md): choose random-prefix")
	}
	if c.step == 1 && c.ways.Spec.Fields == heavy.Src|heavy.Dst {
		return v.Error("level", "a pair of addresses has 1,089 pairs of levels by bit: choose nibble, or one dimension")
	}
	if c.exact > 0 {
		if err := c.firstable(); err != nil {
			return v.Error("exact8", err.Error())
		}
	}
	if bits := int(v.Int("bits6")); bits%c.step != 0 {
		return v.Error("bits6", fmt.Sprintf("allowed are multiples of %d, the bits of a level", c.step))
	}
	if !c.stacking && c.ways.Entries%c.ways.Count != 0 {
		return v.Error("entries", fmt.Sprintf("allowed are multiples of the %d ways", c.ways.Count))
	}
	if n := c.ways.PerWay(); setup.Hash == algo.HashCRC && n&(n-1) != 0 {
		return v.Error("entries", "with CRC hashes a way has a power of two of them, as on the switch")
	}
	if c.delay > 0 && !setup.Replay {
		return v.Error("delay", "only a replay can delay second passes: attach leaves it 0")
	}
	return nil
}

// perStack is the number of entries of one way of one level in stacking.
func (c *config) perStack() int { return c.ways.Entries / (2 * c.instances()) }

// draws is the number of levels that a packet of a family draws from: the factor of counts.
func (c *config) draws(v4 bool) float64 {
	n := c.levels6
	if v4 {
		n = c.levels4
	}
	switch {
	case c.whole:
		return 1
	case c.ways.Spec.Fields == heavy.Src|heavy.Dst:
		return float64((n + 1) * (n + 1))
	}
	return float64(n - c.exact)
}
