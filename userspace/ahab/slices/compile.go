package slices

import (
	"fmt"
	"net/netip"

	"github.com/xdpmon/xdpmon/maps/prefix"
)

// What a value of the member table means: bpf/ahab/member.h. A value is a membership, or the field and the trie that are next.
const (
	onward     = 1 << 30
	fieldShift = 27
	rootMask   = 1<<fieldShift - 1
)

// mostWork bounds what is compared while rules are compiled.
const mostWork = 100_000_000

// compile makes tries of rules. Trie 0 holds where to begin; each field that decides something has a pair of tries, of which the second
// is for addresses of IPv6.
func (p *planner) compile() error {
	p.Roots = 2
	c := &compiler{Plan: p.Plan}
	value := c.room(p.rules, 0)
	if c.work > mostWork {
		return fmt.Errorf("%w: interfaces, VLANs, marks and prefixes decide together in too many ways: give prefixes within slices of interfaces, not beside them", ErrPlan)
	}
	p.Rules = append(p.Rules, prefix.Rule{Root: 0, Value: value})
	return nil
}

type compiler struct {
	*Plan
	work int
}

// room is the value for packets that all these rules may fit, of which fields before the given one are known to.
func (c *compiler) room(rules []rule, field int) uint32 {
	for field < fields && !used(rules, field) {
		field++
	}
	if field == fields {
		return c.membership(rules)
	}
	root := c.Roots
	c.Roots += 2
	alone := decides(rules, field)
	var rest []rule
	groups, order := map[part][]rule{}, []part{}
	for _, r := range rules {
		k := r.parts[field]
		if k == nil {
			rest = append(rest, r)
			continue
		}
		at := part{k.key.Masked(k.bits), k.bits, k.v6}
		if groups[at] == nil {
			order = append(order, at)
		}
		groups[at] = append(groups[at], r)
	}
	other := c.room(rest, field+1)
	for i := range 2 {
		c.Rules = append(c.Rules, prefix.Rule{Root: root + i, Value: other})
	}
	for _, at := range order {
		fit := groups[at]
		if !alone {
			fit = c.fitting(rules, field, at)
		}
		r := prefix.Rule{Root: root, Key: at.key, Bits: at.bits, Value: c.room(fit, field+1)}
		if at.v6 {
			r.Root++
		}
		if at.bits == 0 { // everything of its family
			c.drop(r.Root)
		}
		c.Rules = append(c.Rules, r)
	}
	return onward | uint32(field)<<fieldShift | uint32(root)
}

// drop takes the rule for everything out of a trie.
func (c *compiler) drop(root int) {
	for i := range c.Rules {
		if c.Rules[i].Root == root && c.Rules[i].Bits == 0 {
			c.Rules[i] = c.Rules[len(c.Rules)-1]
			c.Rules = c.Rules[:len(c.Rules)-1]
			return
		}
	}
}

// decides reports whether a field alone decides who is the most specific: no later one does, and in the earlier ones all rules are equal.
func decides(rules []rule, field int) bool {
	for f := field + 1; f < fields; f++ {
		if used(rules, f) {
			return false
		}
	}
	for _, r := range rules {
		for f := range field {
			a, b := r.parts[f], rules[0].parts[f]
			if (a == nil) != (b == nil) || a != nil && a.bits != b.bits {
				return false
			}
		}
	}
	return true
}

func used(rules []rule, field int) bool {
	for _, r := range rules {
		if r.parts[field] != nil {
			return true
		}
	}
	return false
}

// fitting are the rules that a packet may fit whose field begins so.
func (c *compiler) fitting(rules []rule, field int, at part) (fit []rule) {
	if c.work += len(rules); c.work > mostWork {
		return nil
	}
	for _, r := range rules {
		if k := r.parts[field]; k == nil || k.covers(at) {
			fit = append(fit, r)
		}
	}
	return fit
}

// membership is the most specific rule's.
func (c *compiler) membership(rules []rule) uint32 {
	if len(rules) == 0 {
		return 0
	}
	best := rules[0]
	for _, r := range rules[1:] {
		if specific(r, best) > 0 {
			best = r
		}
	}
	return uint32(c.Leaves[best.leaf].Number) | uint32(best.weight)<<16
}

// packetOf is what a packet shows of itself.
type packetOf struct {
	index, vlan, mark uint32
	src, dst          prefix.Key
	v6                bool
}

// NoVLAN is what a packet without a tag is looked up with.
const NoVLAN = 0xffff

// Find is a packet's slice, 0 for none, and its user's weight, in the tries of a plan. Interface and mark are those of a replay: none.
func Find(t *prefix.Trie, vlan uint32, src, dst netip.Addr) (slice, weight uint32) {
	return find(t, packetOf{vlan: vlan, src: prefix.KeyOf(src), dst: prefix.KeyOf(dst), v6: src.Is6()})
}

// find looks a packet up as bpf/ahab/member.h does.
func find(t *prefix.Trie, k packetOf) (slice, weight uint32) {
	value := t.Find(0, prefix.Key{})
	for range fields {
		if value&onward == 0 {
			break
		}
		field, root := int(value&^onward>>fieldShift), int(value&rootMask)
		key := [fields]prefix.Key{prefix.Word(k.index), prefix.Word(k.vlan), prefix.Word(k.mark), k.src, k.dst}[field]
		if field >= bySource && k.v6 {
			root++
		}
		value = t.Find(root, key)
	}
	return value & 0xffff, value >> 16 & 0x3ff
}
