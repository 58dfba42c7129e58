package precision

import (
	"fmt"
	"strconv"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// fullPacket is an initial value of one packet in bytes: with it the bound on second passes holds for packets up
// to this size.
const fullPacket = 1500

type config struct {
	ways   heavy.Ways
	bytes  bool
	budget float64
	passes float64 // maximum of second passes per second for an adapting initial value
	delay  int
	top    int
}

func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	fields, err := heavy.ParseKind(v.Text("key"))
	if err != nil {
		return nil, v.Error("key", err.Error())
	}
	spec := heavy.Spec{Fields: fields, Family: heavy.ParseFamily(v.Text("family"))}
	c := &config{bytes: v.Text("count") == "bytes", passes: v.Float("passes"), delay: int(v.Int("delay")), top: int(v.Int("top"))}
	c.ways = heavy.Ways{Prefix: Name, Spec: spec, Words: spec.Words(), Count: int(v.Int("ways")), Entries: int(v.Int("entries")),
		Admission: heavy.ParseAdmission(v.Text("admission")), Noted: setup.Hash != algo.HashCRC}
	if err := c.readInitial(v, setup); err != nil {
		return nil, err
	}
	c.budget = v.Float("recirculation")
	if c.budget == 0 {
		c.budget = 1
		if !c.ways.Adapts {
			c.budget = min(1, 2/float64(c.ways.Initial+1))
		}
	}
	c.ways.Initial *= uint64(c.unitOfInitial())
	return c, c.check(v, setup)
}

// auto is the value of precision.initial that follows the load.
const auto = "auto"

// readInitial: on a switch (hashes with CRC), second passes share a port of one pipeline, and the initial value is
// compiled in.
func (c *config) readInitial(v algo.Values, setup algo.Setup) (err error) {
	switch text := v.Text("initial"); {
	case text == auto && setup.Hash == algo.HashCRC:
		c.ways.Initial = switchInitial
	case text == auto:
		c.ways.Initial, c.ways.Adapts = 1, true
	default:
		if c.ways.Initial, err = strconv.ParseUint(text, 10, 64); err != nil || c.ways.Initial > mostInitial {
			return v.Error("initial", fmt.Sprintf("allowed are auto and numbers from 0 to %d", mostInitial))
		}
	}
	return nil
}

const (
	switchInitial = 100
	mostInitial   = 1_000_000
)

// unitOfInitial is the initial value of one packet.
func (c *config) unitOfInitial() float64 {
	if c.bytes {
		return fullPacket
	}
	return 1
}

func (c *config) check(v algo.Values, setup algo.Setup) error {
	if c.ways.Entries%c.ways.Count != 0 {
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
