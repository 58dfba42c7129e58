package carpe

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
)

type config struct {
	values    algo.Values
	spec      heavy.Spec
	bytes     bool
	threshold float64
	epsilon   float64
	declare   float64
	start     uint32 // 1/s
	group     grouping
	groups    int
	observers uint32 // assumed for unknown groups, without a coordinator
	unknown   uint32 // ... and with a coordinator
	most      uint32 // largest number of observers that parameters exist for: a power of two
	span, age int
	ways      int
	entries   int // of a way
	handover  bool
	flows     int
	top       int
}

// Bounds of the fields of an entry's word: bpf/carpe/carpe.bpf.c.
const (
	floor     = 1 << 24
	mostUnits = 1<<31 - 1 // of a bundle
)

func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	fields, err := heavy.ParseKind(v.Text("key"))
	if err != nil {
		return nil, v.Error("key", err.Error())
	}
	c := &config{values: v, spec: heavy.Spec{Fields: fields, Family: heavy.ParseFamily(v.Text("family"))}, bytes: v.Text("count") == "bytes",
		threshold: float64(v.Int("threshold")), epsilon: v.Float("epsilon"), declare: v.Float("declare"), groups: int(v.Int("groups")),
		observers: uint32(v.Int("observers")), span: int(v.Int("span")), age: int(v.Int("age")), ways: int(v.Int("ways")), handover: v.Bool("handover"),
		flows: int(v.Int("flows")), top: int(v.Int("top"))}
	if c.group, err = parseGrouping(v.Text("group"), c.spec); err != nil {
		return nil, v.Error("group", err.Error())
	}
	if err := c.readSampling(v, setup); err != nil {
		return nil, err
	}
	return c, c.readSize(v, setup)
}

// readSampling checks that a bundle is longer than the wait for its first sample.
func (c *config) readSampling(v algo.Values, setup algo.Setup) error {
	n := 1 / v.Float("s")
	c.start = uint32(math.Round(n))
	if math.Abs(n-float64(c.start)) > 1e-6*n {
		return v.Error("s", "allowed are 1/n for whole numbers n")
	}
	if setup.Hash == algo.HashCRC && bits.OnesCount32(c.start) != 1 {
		return v.Error("s", "with CRC hashes allowed are powers of two, as on the switch")
	}
	if c.epsilon*c.threshold > mostUnits {
		return v.Error("threshold", fmt.Sprintf("a bundle would be larger than %d: choose a smaller carpe.epsilon", mostUnits))
	}
	if c.tau(1) <= c.start {
		return v.Error("s", fmt.Sprintf("tau = epsilon threshold = %d must be above 1/s = %d: choose a larger s, or a larger epsilon", c.tau(1), c.start))
	}
	c.most = 1
	for c.most < 1<<16 && c.tau(2*c.most) > c.start {
		c.most *= 2
	}
	c.unknown = c.observers
	if c.observers == 0 {
		c.observers, c.unknown = 1, c.most
	}
	if c.observers > c.most {
		return v.Error("observers", fmt.Sprintf("tau = epsilon threshold / observers must be above 1/s: at most %d, or a larger s", c.most))
	}
	return nil
}

func (c *config) readSize(v algo.Values, setup algo.Setup) error {
	entries := int(v.Int("entries"))
	c.entries = entries / c.ways
	if entries%c.ways != 0 {
		return v.Error("entries", fmt.Sprintf("allowed are multiples of the %d ways", c.ways))
	}
	if setup.Hash == algo.HashCRC && bits.OnesCount(uint(c.entries)) != 1 {
		return v.Error("entries", "with CRC hashes a way has a power of two of them, as on the switch")
	}
	return nil
}

// tau is the size of a bundle, in units, of a group with so many observers (section 3.2), rounded to a whole number.
func (c *config) tau(observers uint32) uint32 {
	return uint32(max(1, math.Round(c.epsilon*c.threshold/float64(observers))))
}

// chance is the largest 32-bit random number at which a full bundle is reported: r = 1/observers.
func chance(observers uint32) uint32 { return uint32(1<<32/uint64(observers) - 1) }

// reports is R: how many reports make an elephant, with the rounded tau.
func (c *config) reports(observers uint32) float64 {
	return max(1, math.Round(c.declare*c.threshold/c.weight(observers)))
}

// weight is the number of units that a report represents.
func (c *config) weight(observers uint32) float64 {
	return float64(c.tau(observers)) * float64(observers)
}

// limit is the sum of weights from which on a flow is an elephant: the weight of R reports of this many observers, less half a report,
// because reports of other numbers of observers have other weights.
func (c *config) limit(observers uint32) float64 {
	return (c.reports(observers) - .5) * c.weight(observers)
}

// advertised is the number of observers that hosts are sent when n observe a group: a power of two, so that hosts need an update
// only when n has doubled.
func (c *config) advertised(n int) uint32 {
	if n < 1 {
		return 1
	}
	return min(c.most, 1<<(bits.Len(uint(n))-1))
}

func (c *config) unit() report.Unit {
	if c.bytes {
		return report.Bytes
	}
	return report.PacketUnit
}
