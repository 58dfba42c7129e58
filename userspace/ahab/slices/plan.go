package slices

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path"
	stdslices "slices"

	"github.com/xdpmon/xdpmon/maps/prefix"
	"github.com/xdpmon/xdpmon/userspace/ahab/share"
)

// ErrPlan is wrapped when a file cannot be carried out on the interfaces that there are.
var ErrPlan = errors.New("the slices cannot be carried out")

// Interface is one that packets may be seen on.
type Interface struct {
	Name  string
	Index int
}

// Leaf is a slice that packets belong to.
type Leaf struct {
	Name   string  // with those around it: a/b
	Number int     // from 1, of its registers
	Node   int     // of the tree
	User   uint64  // what a user is, as bpf/ahab/member.h has it
	Full   float64 // bytes a second that it gets when all are busy; +Inf: any
	Share  float64 // the same as a multiple of what it would be if all were alike

	Ceiling float64 // bytes a second that it never passes: the lowest one on its path, without the link's; 0: none
}

// Plan is a file on the interfaces that there are.
type Plan struct {
	Ceiling float64 // of all slices together, bytes a second; 0: none
	Nodes   []share.Node
	Leaves  []Leaf
	Roots   int
	Rules   []prefix.Rule
	Left    []string // interfaces for which there was no room
	Absent  []string // interfaces that are named and not there
	rules   []rule
}

// Member states what belongs to a slice, or to a user of it with a weight of its own.
type Member struct {
	Slice               int
	Weight              uint64
	User                uint64 // what a user is, as bpf/ahab/member.h has it
	Interface           int    // 0: any
	VLAN, Mark          *uint32
	Source, Destination netip.Prefix // not valid: any
}

// Members are all of them, the most specific first: of those that a packet fits the first one counts.
func (p *Plan) Members() []Member {
	rules := stdslices.Clone(p.rules)
	stdslices.SortStableFunc(rules, func(a, b rule) int { return specific(b, a) })
	list := make([]Member, len(rules))
	for i, r := range rules {
		leaf := p.Leaves[r.leaf]
		m := Member{Slice: leaf.Number, Weight: max(1, r.weight), User: leaf.User}
		if n := r.parts[byInterface]; n != nil {
			m.Interface = int(n.key.High >> 32)
		}
		m.VLAN, m.Mark = r.parts[byVLAN].word(), r.parts[byMark].word()
		m.Source, m.Destination = r.parts[bySource].prefix(), r.parts[byDestination].prefix()
		list[i] = m
	}
	return list
}

func (a *part) word() *uint32 {
	if a == nil {
		return nil
	}
	n := uint32(a.key.High >> 32)
	return &n
}

func (a *part) prefix() netip.Prefix {
	if a == nil {
		return netip.Prefix{}
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], a.key.High)
	binary.BigEndian.PutUint64(b[8:], a.key.Low)
	if a.v6 {
		return netip.PrefixFrom(netip.AddrFrom16(b), a.bits)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte(b[:4])), a.bits)
}

// planner makes a plan.
type planner struct {
	*Plan
	file       *File
	interfaces []Interface
	numbers    map[string]int // of the plan before: a slice that stays keeps its registers
	taken      map[int]bool
	queue      []pending
}

type pending struct {
	slice *Slice
	name  string
	node  int
}

// Plan carries the file out. Slices that another plan has as well keep their numbers; numbers of others are given again.
func (f *File) Plan(interfaces []Interface, before *Plan) (*Plan, error) {
	p := &planner{Plan: &Plan{}, file: f, interfaces: interfaces, numbers: map[string]int{}, taken: map[int]bool{}}
	if before != nil {
		for _, l := range before.Leaves {
			p.numbers[l.Name] = l.Number
		}
	}
	ceiling := f.Capacity
	if ceiling == unlimited {
		ceiling = math.Inf(1)
	}
	p.Nodes = []share.Node{{Weight: 1, Ceiling: ceiling}}
	p.expand(0, "", f.Slices)
	for len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = p.queue[1:]
		p.expand(next.node, next.name+"/", next.slice.Children)
	}
	if err := p.number(); err != nil {
		return nil, err
	}
	p.shares()
	p.ceilings()
	return p.Plan, p.compile()
}

// expand puts the children of a node after what there is, so that siblings are neighbours.
func (p *planner) expand(parent int, prefix string, list []Slice) {
	p.Nodes[parent].First = len(p.Nodes)
	for i := range list {
		s := &list[i]
		found := p.find(s.Match.Interfaces)
		p.absent(s.Match.Interfaces)
		if !s.Match.Each {
			p.add(s, prefix+s.Name, found)
			continue
		}
		for _, n := range found {
			if len(p.Leaves) >= p.file.Room {
				p.Left = append(p.Left, n.Name)
				continue
			}
			p.add(s, prefix+s.Name+"/"+n.Name, []Interface{n})
		}
	}
	p.Nodes[parent].Count = len(p.Nodes) - p.Nodes[parent].First
}

func (p *planner) add(s *Slice, name string, found []Interface) {
	ceiling := s.Ceiling
	if ceiling == unlimited {
		ceiling = math.Inf(1)
	}
	node := len(p.Nodes)
	p.Nodes = append(p.Nodes, share.Node{Weight: s.Weight, Floor: s.Floor, Ceiling: ceiling})
	if len(s.Children) > 0 {
		p.queue = append(p.queue, pending{s, name, node})
		return
	}
	p.Leaves = append(p.Leaves, Leaf{Name: name, Node: node, User: userBits(s)})
	p.rules = append(p.rules, rulesOf(s, len(p.Leaves)-1, found)...)
}

// find lists the interfaces that patterns name.
func (p *planner) find(patterns []string) (found []Interface) {
	for _, n := range p.interfaces {
		if stdslices.ContainsFunc(patterns, func(pattern string) bool { ok, _ := path.Match(pattern, n.Name); return ok }) {
			found = append(found, n)
		}
	}
	return found
}

// absent notes what is named and not there. What fits a pattern may appear later.
func (p *planner) absent(patterns []string) {
	for _, name := range patterns {
		there := stdslices.ContainsFunc(p.interfaces, func(n Interface) bool { return n.Name == name })
		if named(name) && !there && !stdslices.Contains(p.Absent, name) {
			p.Absent = append(p.Absent, name)
		}
	}
}

// number gives leaves their registers.
func (p *planner) number() error {
	if len(p.Leaves) > p.file.Room {
		return fmt.Errorf("%w: %d slices, there is room for %d", ErrPlan, len(p.Leaves), p.file.Room)
	}
	for i := range p.Leaves {
		if n := p.numbers[p.Leaves[i].Name]; n > 0 && n <= p.file.Room {
			p.Leaves[i].Number, p.taken[n] = n, true
		}
	}
	next := 1
	for i := range p.Leaves {
		if p.Leaves[i].Number > 0 {
			continue
		}
		for p.taken[next] {
			next++
		}
		p.Leaves[i].Number, p.taken[next] = next, true
	}
	return nil
}

// ceilings are what leaves, and all of them together, never pass. A single leaf has the link's as its own.
func (p *planner) ceilings() {
	lowest := make([]float64, len(p.Nodes))
	lowest[0] = math.Inf(1)
	for i, n := range p.Nodes {
		for c := n.First; c < n.First+n.Count; c++ {
			lowest[c] = min(lowest[i], p.Nodes[c].Ceiling)
		}
	}
	all := p.Nodes[0].Ceiling
	if len(p.Leaves) == 1 {
		lowest[p.Leaves[0].Node] = min(lowest[p.Leaves[0].Node], all)
		all = math.Inf(1)
	}
	p.Ceiling = bounded(all)
	for i := range p.Leaves {
		p.Leaves[i].Ceiling = bounded(lowest[p.Leaves[i].Node])
	}
}

// bounded is a ceiling, 0 where there is none.
func bounded(ceiling float64) float64 {
	if math.IsInf(ceiling, 1) {
		return 0
	}
	return ceiling
}

// shares are what leaves get when all are busy, as multiples of what they would get if all were alike.
func (p *planner) shares() {
	t := share.New(p.Nodes)
	for _, l := range p.Leaves {
		t.Demand(l.Node, math.Inf(1))
	}
	t.Divide()
	sum := 0.
	for i := range p.Leaves {
		p.Leaves[i].Full = t.Alloc(p.Leaves[i].Node)
		sum += p.Leaves[i].Full
	}
	for i := range p.Leaves {
		p.Leaves[i].Share = 1
		if !math.IsInf(sum, 1) && sum > 0 {
			p.Leaves[i].Share = p.Leaves[i].Full / sum * float64(len(p.Leaves))
		}
	}
}

// userBits are the part of a membership that is the same for all of a slice: bpf/ahab/member.h.
func userBits(s *Slice) uint64 {
	kind := map[string]uint64{Flow: 0, Source: 1, Destination: 2}[s.User]
	return kind<<26 | uint64(s.Prefix4)<<28 | uint64(s.Prefix6)<<34
}

// The fields in the order in which they are looked up, and in which they decide.
const (
	byInterface = iota
	byVLAN
	byMark
	bySource
	byDestination
	fields
)

// part of a rule: what a field has to begin with; v6 only of addresses.
type part struct {
	key  prefix.Key
	bits int
	v6   bool
}

func (a part) covers(b part) bool {
	return a.bits <= b.bits && a.v6 == b.v6 && a.masked(a.bits) == b.masked(a.bits)
}

func (a part) masked(bits int) prefix.Key { return a.key.Masked(bits) }

// rule states that packets whose fields fit belong to a leaf.
type rule struct {
	parts  [fields]*part // nil: any
	leaf   int
	weight uint64
	user   bool // a user of the leaf, and not the leaf
}

func rulesOf(s *Slice, leaf int, found []Interface) []rule {
	if len(s.Match.Interfaces) > 0 && len(found) == 0 {
		return nil
	}
	set := func(field int) func(*rule, part) { return func(r *rule, v part) { r.parts[field] = &v } }
	list := []rule{{leaf: leaf, weight: 1}}
	list = times(list, found, func(r *rule, n Interface) { set(byInterface)(r, part{key: prefix.Word(uint32(n.Index)), bits: 32}) })
	list = times(list, s.Match.VLANs, func(r *rule, v uint64) { set(byVLAN)(r, part{key: prefix.Word(uint32(v)), bits: 32}) })
	list = times(list, s.Match.Marks, func(r *rule, v uint64) { set(byMark)(r, part{key: prefix.Word(uint32(v)), bits: 32}) })
	network := func(field int) func(*rule, netip.Prefix) {
		return func(r *rule, v netip.Prefix) {
			set(field)(r, part{key: prefix.KeyOf(v.Addr()), bits: v.Bits(), v6: v.Addr().Is6()})
		}
	}
	list = times(list, s.Match.Sources, network(bySource))
	list = times(list, s.Match.Destinations, network(byDestination))
	return append(list, weighed(s, list)...)
}

// weighed are the rules of users with weights of their own: those of the slice, narrowed to their address.
func weighed(s *Slice, list []rule) (more []rule) {
	field := bySource
	if s.User == Destination {
		field = byDestination
	}
	for _, u := range s.Users {
		own := part{key: prefix.KeyOf(u.Prefix.Addr()), bits: u.Prefix.Bits(), v6: u.Prefix.Addr().Is6()}
		for _, r := range list {
			if r.parts[field] == nil || r.parts[field].covers(own) {
				r.parts[field], r.weight, r.user = &own, u.Weight, true
				more = append(more, r)
			}
		}
	}
	return more
}

// specific orders rules: the first field that differs decides, and in it the longer prefix.
func specific(a, b rule) int {
	for f := range fields {
		n, m := -1, -1
		if a.parts[f] != nil {
			n = a.parts[f].bits
		}
		if b.parts[f] != nil {
			m = b.parts[f].bits
		}
		if n != m {
			return cmp.Compare(n, m)
		}
	}
	if a.user != b.user && a.leaf != b.leaf { // what a slice names is its own, whatever another states of its users
		return map[bool]int{true: -1, false: 1}[a.user]
	}
	if a.user != b.user {
		return map[bool]int{true: 1, false: -1}[a.user]
	}
	return 0
}
