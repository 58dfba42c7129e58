package precision

import (
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// fullPacket is what an initial value of one packet is in bytes: with it the bound on second passes holds for packets up
// to this size.
const fullPacket = 1500

type config struct {
	ways   heavy.Ways
	bytes  bool
	budget float64
	delay  int
	top    int
}

func newConfig(v algo.Values, env algo.Env) (*config, error) {
	fields, err := heavy.ParseKind(v.Text("key"))
	if err != nil {
		return nil, v.Error("key", err.Error())
	}
	spec := heavy.Spec{Fields: fields, Family: heavy.ParseFamily(v.Text("family"))}
	c := &config{bytes: v.Text("count") == "bytes", delay: int(v.Int("delay")), top: int(v.Int("top"))}
	c.ways = heavy.Ways{Prefix: Name, Spec: spec, Words: spec.Words(), Count: int(v.Int("ways")), Entries: int(v.Int("entries")),
		Admission: heavy.ParseAdmission(v.Text("admission")), Initial: uint64(v.Int("initial"))}
	c.budget = v.Float("recirculation")
	if c.budget == 0 {
		c.budget = min(1, 2/float64(c.ways.Initial+1))
	}
	if c.bytes {
		c.ways.Initial *= fullPacket
	}
	return c, c.check(v, env)
}

func (c *config) check(v algo.Values, env algo.Env) error {
	if c.ways.Entries%c.ways.Count != 0 {
		return v.Error("entries", fmt.Sprintf("allowed are multiples of the %d ways", c.ways.Count))
	}
	if n := c.ways.PerWay(); env.CRC && n&(n-1) != 0 {
		return v.Error("entries", "with CRC hashes a way has a power of two of them, as on the switch")
	}
	if c.delay > 0 && !env.Replay {
		return v.Error("delay", "only a replay can delay second passes: attach leaves it 0")
	}
	return nil
}
