package carpe

import (
	"math/bits"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/algo/p4text"
)

// twinForms: the twin counts packets by the 5-tuple of IPv4, and hands nothing over.
var twinForms = []algo.TwinForm{algo.Just("key", "5tuple"), algo.Just("family", "4"), algo.Just("count", "packets"), algo.Just("ways", "2"), algo.Just("handover", "false"),
	{Key: "groups", Has: "at most 4096, the entries of a table", Fits: func(v algo.Values) bool { return v.Int("groups") <= 4096 }}}

// P4 implements algo.Twin: params.p4.
//
//	CARPE_ENTRIES, carpe_slot_t  of a way
//	CARPE_HEARD, heard_slot_t    of carpe_heard
//	CARPE_FLOOR                  the remaining units of a bundle are stored above it
//	sample_t                     a coin that may begin a bundle if it is 0
//	CARPE_TAU, CARPE_BEGIN, CARPE_CHANCE  of unknown groups: units of a bundle; what a new entry holds; r, in 2^31
//	CARPE_SRC, CARPE_DST         masks of groups
func (c *config) P4() (map[string]string, error) {
	if c.start < 2 {
		return nil, c.values.NoForm("s", "what is below 1: a coin of at least one bit")
	}
	if bits.OnesCount32(c.observers) != 1 {
		return nil, c.values.NoForm("observers", "powers of two")
	}
	tau := c.tau(c.observers)
	text := p4text.New("params", "carpe")
	for _, d := range []struct {
		name  string
		value uint64
	}{{"ENTRIES", uint64(c.entries)}, {"HEARD", heardSlots}, {"TAU", uint64(tau)}} {
		text.Line("#define CARPE_%s %d", d.name, d.value)
	}
	for _, d := range []struct {
		name  string
		value uint64
	}{{"FLOOR", floor}, {"BEGIN", floor + uint64(tau-c.start)}, {"CHANCE", (uint64(chance(c.observers)) + 1) >> 1}, {"SRC", uint64(mask32(c.group.src4))},
		{"DST", uint64(mask32(c.group.dst4))}} {
		text.Line("#define CARPE_%s 0x%08x", d.name, d.value)
	}
	text.Line("typedef bit<%d> carpe_slot_t;", bits.Len(uint(c.entries-1)))
	text.Line("typedef bit<%d> heard_slot_t;", bits.Len(uint(heardSlots-1)))
	text.Line("typedef bit<%d> sample_t;", bits.Len32(c.start-1))
	return map[string]string{"params": text.String()}, nil
}

// TwinGroup is an entry of the twin's table carpe.groups, by the parameters of its action.
type TwinGroup struct {
	Group
	Begin, Chance, Tau uint32
}

// TwinGroups are the entries of that table for a coordinator's message. The number of observers is rounded to a power of two
// there.
func TwinGroups(v algo.Values, message []byte) (groups []TwinGroup, err error) {
	c, err := newConfig(v, algo.Switch())
	if err != nil {
		return nil, err
	}
	err = c.updates(message, func(g Group, observers uint32) {
		tau := c.tau(observers)
		groups = append(groups, TwinGroup{Group: g, Begin: floor + tau - c.start, Chance: uint32((uint64(chance(observers)) + 1) >> 1), Tau: tau})
	})
	return groups, err
}

// TwinObservers derives the number of observers from a bundle's units, since a switch's report does not include it; 0: no number
// has such a bundle.
func TwinObservers(v algo.Values, units uint32) (uint32, error) {
	c, err := newConfig(v, algo.Switch())
	if err != nil {
		return 0, err
	}
	if c.tau(c.observers) == units {
		return c.observers, nil
	}
	for n := uint32(1); n <= c.most; n *= 2 {
		if c.tau(n) == units {
			return n, nil
		}
	}
	return 0, nil
}

// Updates are a coordinator's messages with the number of observers of each group.
func Updates(observers map[Group]uint32) [][]byte {
	var w writer
	for _, g := range sortedGroups(observers) {
		w.update(g, observers[g])
	}
	return w.messages()
}
