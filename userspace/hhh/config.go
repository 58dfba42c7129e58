package hhh

import (
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// fullPacket is what an initial value of one packet is in bytes.
const fullPacket = 1500

type config struct {
	ways      heavy.Ways
	stacking  bool
	bytes     bool
	step      int // bits of a level
	levels4   int // below the root
	levels6   int
	threshold float64
	budget    float64
	delay     int
	top       int
}

var dimensions = map[string]heavy.Fields{"src": heavy.Src, "dst": heavy.Dst, "both": heavy.Src | heavy.Dst}

func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	c := &config{stacking: v.Text("method") == "stacking", bytes: v.Text("count") == "bytes", step: 8, threshold: v.Float("threshold"),
		budget: v.Float("recirculation"), delay: int(v.Int("delay")), top: int(v.Int("top"))}
	if v.Text("level") == "nibble" {
		c.step = 4
	}
	c.levels4, c.levels6 = 32/c.step, int(v.Int("bits6"))/c.step
	spec := heavy.Spec{Fields: dimensions[v.Text("dimension")], Family: heavy.ParseFamily(v.Text("family")), Tagged: true}
	if c.stacking && spec.Family == heavy.Both {
		spec.Family = heavy.IPv4
	}
	c.ways = heavy.Ways{Prefix: Name, Spec: spec, Words: spec.Words(), Count: int(v.Int("ways")), Entries: int(v.Int("entries")),
		Admission: heavy.ParseAdmission(v.Text("admission")), Initial: uint64(v.Int("initial")), Subtract: true, Noted: setup.Hash != algo.HashCRC}
	if c.budget == 0 {
		c.budget = min(1, 2*float64(c.instances())/float64(c.ways.Initial+1))
	}
	if c.bytes {
		c.ways.Initial *= fullPacket
	}
	return c, c.check(v, setup)
}

// maxStack is STACK_LEVELS of bpf/hhh: levels of stacking that are not exact.
const maxStack = 7

// exactBits of an address are counted exactly in stacking, and whatever is shorter.
const exactBits = 8

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

func (c *config) checkStack(v algo.Values) error {
	if c.ways.Spec.Fields == heavy.Src|heavy.Dst {
		return v.Error("method", "stacking counts one address: an instance of every pair of levels has no room in 20 stages. Choose random-prefix")
	}
	if n := c.stackLevels(); n < 1 || n > maxStack {
		return v.Error("method", fmt.Sprintf("stacking has room for 1 to %d levels above %d bits, %d are asked for: IPv4 in bytes or nibbles, "+
			"IPv6 (hhh.family=6) in bytes with hhh.bits6 up to 64 or in nibbles up to 36. Choose random-prefix for more", maxStack, exactBits, n))
	}
	return nil
}

func (c *config) check(v algo.Values, setup algo.Setup) error {
	if c.stacking {
		if err := c.checkStack(v); err != nil {
			return err
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

// draws is how many levels a packet of a family draws from: what counts are multiplied by.
func (c *config) draws(v4 bool) float64 {
	n := c.levels6
	if v4 {
		n = c.levels4
	}
	if c.ways.Spec.Fields == heavy.Src|heavy.Dst {
		return float64((n + 1) * (n + 1))
	}
	return float64(n)
}
