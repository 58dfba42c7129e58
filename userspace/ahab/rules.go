package ahab

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/maps/prefix"
	members "github.com/xdpmon/xdpmon/userspace/ahab/slices"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Rules are what a control plane writes into a switch that runs the twin. Entries of members, words and shares stay as long as the file of
// slices does; those of Egress.leaving.slices are what the loop of 10 ms divides, and the lease is renewed with them.
type Rules struct {
	Entries []Entry  `json:"entries"`
	Filters []Filter `json:"filters"`
	Clear   []string `json:"clear"` // registers of a slice that is new: to these values
}

// Entry of a table; without a match it is the default action. Of several that fit the first one counts.
type Entry struct {
	Table  string   `json:"table"`
	Match  []Match  `json:"match,omitempty"`
	Action string   `json:"action"`
	Args   []uint64 `json:"args"`
}

// Match is a key. A mask of 0 fits anything; of an exact key it is all ones.
type Match struct {
	Value uint64 `json:"value"`
	Mask  uint64 `json:"mask"`
}

// Filter is a low-pass filter that sums up what arrives, and forgets with a time constant.
type Filter struct {
	Name    string `json:"name"`
	DecayNS int64  `json:"decay_ns"`
}

// P4Rules implements algo.TwinRules.
func (c *config) P4Rules() ([]byte, error) {
	r, err := c.twinRules()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(r, "", " ")
	return append(text, '\n'), err
}

// forever is a lease that does not end: epochs of the twin's clock have 28 bits.
const forever = 1 << 30

// TwinRules are the rules of a configuration, with a lease without end.
func TwinRules(v algo.Values) (*Rules, error) {
	c, err := newConfig(v, algo.Switch())
	if err != nil {
		return nil, err
	}
	return c.twinRules()
}

func (c *config) twinRules() (*Rules, error) {
	c, err := c.twin()
	if err != nil {
		return nil, err
	}
	r := &Rules{Clear: []string{fmt.Sprintf("Ingress.ahab.limits.ahab_limit = %d", full)}}
	for _, row := range []string{"ahab_row0", "ahab_row1", "ahab_row2"} {
		r.Filters = append(r.Filters, Filter{"Ingress.ahab.rows." + row, int64(c.tau)})
	}
	r.add("Ingress.ahab.lease", "hold", nil, forever)
	if err := c.memberRules(r); err != nil {
		return nil, err
	}
	c.sliceRules(r)
	shares, moves := ratioTables()
	for _, table := range []string{"shares_low", "shares_mid", "shares_high"} {
		r.quotients("Ingress.ahab."+table+".shares", shares)
	}
	r.quotients("Egress.leaving.quotients.quotients", moves)
	return r, nil
}

// TwinMembers returns whose packets of a configuration are: slice, weight and what a user is, in the bits of bpf/ahab/member.h; 0: in no slice.
func TwinMembers(v algo.Values) (func(p *packet.Packet) uint64, error) {
	c, err := newConfig(v, algo.Switch())
	if err == nil {
		c, err = c.twin()
	}
	if err != nil {
		return nil, err
	}
	o := &oracle{config: c}
	if c.everything == 0 {
		if o.members, err = prefix.Build(c.plan.Roots, c.plan.Rules, prefix.MaxWords); err != nil {
			return nil, err
		}
	}
	return o.member, nil
}

func (r *Rules) add(table, action string, match []Match, args ...uint64) {
	r.Entries = append(r.Entries, Entry{table, match, action, args})
}

func exact(v uint64, width int) Match { return Match{v, 1<<width - 1} }

// quotients below one; all others are the default.
func (r *Rules) quotients(table string, of []uint64) {
	for n := range ratioSize {
		for d := range ratioSize {
			if part := of[n*ratioSize+d]; part < ratioOne {
				r.add(table, "part", []Match{exact(uint64(n), 32), exact(uint64(d), ratioBits)}, part)
			}
		}
	}
}

// sliceRules are what slices may, as the control loop begins.
func (c *config) sliceRules(r *Rules) {
	for n, s := range c.slices {
		if n == 0 || s.name == "" {
			continue
		}
		e := (&instance{config: c}).element(n, s.capacity, full)
		limited := uint64(0)
		if s.capacity > 0 {
			limited = 1
		}
		r.add("Egress.leaving.slices", "may", []Match{exact(uint64(n), 16)}, limited, uint64(e.Budget), uint64(e.Ceiling), uint64(e.Spacing))
	}
}

// memberRules are who belongs where: what a user is gets a number, of which two rows of the table of words are what it is made of.
func (c *config) memberRules(r *Rules) error {
	var kinds []uint64
	list := c.plan.Members()
	if c.path == "" {
		list = []members.Member{{Slice: 1, Weight: 1, User: c.everything &^ (1<<26 - 1)}}
	}
	for _, m := range list {
		kind := slices.Index(kinds, m.User)
		if kind < 0 {
			kind = len(kinds)
			kinds = append(kinds, m.User)
		}
		c.memberRule(r, m, uint64(kind))
	}
	for kind, user := range kinds {
		words(r, uint64(kind), user)
	}
	return nil
}

func (c *config) memberRule(r *Rules, m members.Member, kind uint64) {
	weight := bits.Len64(m.Weight) - 1
	scale := scaleZero + lengthShift + bits.Len32(c.norm(m.Slice)) - 1 - 16 - weight
	args := []uint64{uint64(m.Slice), kind, uint64(scale), uint64(min(8, 2*weight))}
	fits := func(p netip.Prefix, six bool) bool { return !p.IsValid() || p.Addr().Is6() == six }
	front := []Match{{}, {}, {}}
	if m.VLAN != nil {
		front = []Match{{1, 1}, {uint64(*m.VLAN), 0xfff}, {}}
	}
	if fits(m.Source, false) && fits(m.Destination, false) {
		r.add("Ingress.ahab.members.members4", "member", slices.Concat(front, addressWords(m.Source, false), addressWords(m.Destination, false)), args...)
	}
	if fits(m.Source, true) && fits(m.Destination, true) {
		r.add("Ingress.ahab.members.members6", "member", slices.Concat(front, addressWords(m.Source, true), addressWords(m.Destination, true)), args...)
	}
}

// maskWord is the mask of the i-th word of an address of which so many bits count.
func maskWord(bitsOf, i int) uint64 {
	n := min(32, max(0, bitsOf-32*i))
	return uint64(math.MaxUint32) << (32 - n) & math.MaxUint32
}

// addressWords are the keys of an address, four of IPv6.
func addressWords(p netip.Prefix, six bool) []Match {
	n := 1
	if six {
		n = 4
	}
	list := make([]Match, n)
	if !p.IsValid() {
		return list
	}
	b := p.Addr().AsSlice()
	for i := range list {
		list[i] = Match{uint64(binary.BigEndian.Uint32(b[4*i:])), maskWord(p.Bits(), i)}
	}
	return list
}

// words of what users are, for IPv6 and for IPv4.
func words(r *Rules, kind, user uint64) {
	const table = "Ingress.ahab.users.words"
	name := []string{"flow", "source", "destination"}[user>>26&3]
	prefix4, prefix6 := int(user>>28&0x3f), int(user>>34&0xff)
	var masks []uint64
	for i := range 4 {
		masks = append(masks, maskWord(prefix6, i))
	}
	four, six := []uint64{maskWord(prefix4, 0)}, masks
	if user>>26&3 == userFlow {
		four, six = nil, nil
	}
	r.add(table, name+"4", []Match{exact(kind, 8), exact(1, 1)}, four...)
	r.add(table, name+"6", []Match{exact(kind, 8), exact(0, 1)}, six...)
}

// FilterStep is what the eBPF form's filters do, word for word.
func FilterStep(v algo.Values) func(held, value, now, last uint64) uint64 {
	c, err := newConfig(v, algo.Switch())
	if err != nil {
		panic(err) // the twin was made from these values
	}
	return FilterStepOf(c.tau)
}

// FilterStepOf is FilterStep for a time constant.
func FilterStepOf(tau time.Duration) func(held, value, now, last uint64) uint64 {
	shift, decay := tickShift(tau), decayTable(tau)
	return func(held, value, now, last uint64) uint64 {
		ticks := now>>shift - last>>shift
		if ticks == 0 {
			return held + value
		}
		return min(math.MaxUint32, held*decay[min(ticks, uint64(len(decay)-1))]>>16+value)
	}
}
