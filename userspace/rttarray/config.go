package rttarray

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/xdpmon/xdpmon/bpf/constant"
	bpf "github.com/xdpmon/xdpmon/bpf/rttarray"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
)

// config is the parsed and checked form of the parameters.
type config struct {
	rules    delay.Rules
	evict    bpf.RttArrayRttEvictKind
	stages   int
	slots    int   // of a stage
	expiry   int64 // ns
	tick     int64 // ns
	mantissa int
}

func newConfig(v algo.Values, _ algo.Setup) (*config, error) {
	c := &config{stages: int(v.Int("stages")), expiry: int64(v.Duration("expiry")),
		evict: bpf.RttArrayRttEvictKind(slices.Index(evictions, v.Text("evict")))}
	entries := int(v.Int("entries"))
	if entries&(entries-1) != 0 {
		return nil, v.Error("entries", "allowed are powers of two from 4 to 4194304")
	}
	c.slots = entries / c.stages
	if c.slots < 2 {
		return nil, v.Error("entries", fmt.Sprintf("%d stages need 2 entries each", c.stages))
	}
	var err error
	if c.rules.Kind, err = delay.ParseKind(v.Text("match")); err != nil {
		return nil, v.Error("match", err.Error())
	}
	if c.rules.Side, err = delay.ParseSide(v.Text("side")); err != nil {
		return nil, v.Error("side", err.Error())
	}
	c.tick = c.rules.Kind.TickNS()
	c.rules.Longest = c.tick<<delay.Bits - 1
	c.mantissa = bits.Len(uint(v.Int("resolution"))) - 1
	if ticks := c.expiry / c.tick; ticks < 1 || ticks > math.MaxUint32 {
		return nil, v.Error("expiry", fmt.Sprintf("allowed are %dns to %ds", c.tick, c.rules.Longest/1e9))
	}
	return c, nil
}

func (c *config) cascade() bool { return c.evict == bpf.RttArrayRttEvictKindEVICT_CASCADE }

func (c *config) scale() delay.Scale { return delay.NewScale(c.mantissa, float64(c.tick), false) }

func (c *config) constants() map[constant.Name]any {
	return map[constant.Name]any{
		constant.RttEvict:    uint32(c.evict),
		constant.RttStages:   uint32(c.stages),
		constant.RttBits:     uint32(bits.TrailingZeros(uint(c.slots))),
		constant.RttExpiry:   uint32(c.expiry / c.tick),
		constant.RttTick:     uint32(bits.TrailingZeros64(uint64(c.tick))),
		constant.RttMantissa: uint32(c.mantissa),
		constant.MatchRule:   uint32(c.rules.Kind),
		constant.MatchSide:   uint32(c.rules.Side),
		constant.MatchFinals: false,
	}
}

// sizes of the arrays; unused stages and counters have one entry.
func (c *config) sizes() map[string]int {
	sizes := map[string]int{"rtt_inserts": 1, "rtt_survived": 1, "rtt_hist": c.scale().Bins.Len()}
	for stage := 1; stage <= 4; stage++ {
		name := fmt.Sprintf("rtt_stage%d", stage)
		sizes[name] = 1
		if stage <= c.stages {
			sizes[name] = c.slots
		}
	}
	if c.cascade() {
		sizes["rtt_survived"] = c.slots
		sizes["rtt_hist"] *= delay.SurvivalBins
	}
	return sizes
}
