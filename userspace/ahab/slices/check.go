package slices

import (
	"fmt"
	"net/netip"
	stdslices "slices"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/config"
)

// checker looks at what belongs together.
type checker struct {
	p     *config.Parser
	file  *File
	rules map[condition]*Slice // what belongs to whom: nothing belongs to two
}

// condition is one of each list that a slice and those around it give.
type condition struct {
	interfaces, vlan, mark string
	source, destination    netip.Prefix
}

// top is the name of what is around all slices: none of them can have it.
const top = "/"

func (c *checker) errorf(s *Slice, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.Name != top {
		text = "slice " + s.Name + ": " + text
	}
	c.p.Errorf(&yaml.Node{Line: s.line, Column: s.column}, "%s", text)
}

func (c *checker) check() {
	n := leaves(c.file.Slices)
	if c.file.Room == 0 {
		c.file.Room = max(n, min(n+moreSlices, MaxSlices))
	}
	all := &Slice{Name: top, Ceiling: c.file.Capacity, Prefix4: 32, Prefix6: 128, User: Flow, line: 1, column: 1}
	switch {
	case n > MaxSlices:
		c.errorf(all, "%d slices are too many: at most %d", n, MaxSlices)
	case n > c.file.Room:
		c.errorf(all, "there are %d slices, and room is %d: raise it", n, c.file.Room)
	default:
		c.children(all, c.file.Slices, 0)
	}
}

func (c *checker) children(parent *Slice, list []Slice, depth int) (floors float64) {
	if depth > maxDepth {
		c.errorf(parent, "slices are nested more than %d deep", maxDepth)
		return 0
	}
	for i := range list {
		s := &list[i]
		if first := stdslices.IndexFunc(list[:i], func(o Slice) bool { return o.Name == s.Name }); first >= 0 {
			c.errorf(s, "line %d has a slice of this name in the same place", list[first].line)
		}
		apart := s.Prefix4+s.Prefix6 > 0
		c.inherit(parent, s)
		if s.Ceiling > unlimited && s.Floor > s.Ceiling {
			c.errorf(s, "its floor is %s, its ceiling %s", Rate(s.Floor), Rate(s.Ceiling))
		}
		if len(s.Children) > 0 {
			c.parent(s)
			s.Floor = max(s.Floor, c.children(s, s.Children, depth+1))
		} else {
			if apart && s.User == Flow {
				c.errorf(s, "prefix4 and prefix6 distinguish users by their address: set user: source or user: destination")
			}
			c.users(s)
			c.claim(s)
		}
		floors += s.Floor
	}
	if parent.Ceiling > unlimited && floors > parent.Ceiling*(1+1e-9) {
		what := "its ceiling"
		if parent.Name == top {
			what = "capacity"
		}
		c.errorf(parent, "the floors of the slices in it add up to %s, %s is %s", Rate(floors), what, Rate(parent.Ceiling))
	}
	return floors
}

func (c *checker) parent(s *Slice) {
	if s.Match.Each {
		c.errorf(s, "a slice for every interface has no slices in it")
	}
	if len(s.Users) > 0 {
		c.errorf(s, "users are given in the slices in it, not here")
	}
}

// inherit takes what a slice does not state from its parent, and refuses what lies outside of it.
func (c *checker) inherit(parent, s *Slice) {
	if s.User == "" {
		s.User = parent.User
	}
	if s.Prefix4 == 0 {
		s.Prefix4 = parent.Prefix4
	}
	if s.Prefix6 == 0 {
		s.Prefix6 = parent.Prefix6
	}
	m, p := &s.Match, &parent.Match
	if m.Each && len(m.Interfaces) == 0 {
		c.errorf(s, "each makes a slice for every interface: name them in interfaces")
	}
	if len(m.Interfaces) == 0 {
		m.Interfaces = p.Interfaces
	} else if len(p.Interfaces) > 0 {
		c.errorf(s, "slice %s around it names interfaces already", parent.Name)
	}
	m.VLANs = c.within(s, parent, "VLAN", m.VLANs, p.VLANs)
	m.Marks = c.within(s, parent, "mark", m.Marks, p.Marks)
	m.Sources = c.inside(s, parent, "source", m.Sources, p.Sources)
	m.Destinations = c.inside(s, parent, "destination", m.Destinations, p.Destinations)
}

func (c *checker) within(s, parent *Slice, what string, list, outer []uint64) []uint64 {
	if len(list) == 0 {
		return outer
	}
	for _, v := range list {
		if len(outer) > 0 && !stdslices.Contains(outer, v) {
			c.errorf(s, "%s %d does not belong to slice %s around it", what, v, parent.Name)
		}
	}
	return list
}

func (c *checker) inside(s, parent *Slice, what string, list, outer []netip.Prefix) []netip.Prefix {
	if len(list) == 0 {
		return outer
	}
	for _, v := range list {
		if len(outer) > 0 && !stdslices.ContainsFunc(outer, func(o netip.Prefix) bool { return covers(o, v) }) {
			c.errorf(s, "%s %s does not belong to slice %s around it", what, v, parent.Name)
		}
	}
	return list
}

func covers(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// users have addresses of the kind that distinguishes users here, and such that belong to the slice.
func (c *checker) users(s *Slice) {
	if len(s.Users) > 0 && s.User == Flow {
		c.errorf(s, "users have weights by their address: set user: source or user: destination")
		return
	}
	own := s.Match.Sources
	if s.User == Destination {
		own = s.Match.Destinations
	}
	for i, u := range s.Users {
		bits := s.Prefix6
		if u.Prefix.Addr().Is4() {
			bits = s.Prefix4
		}
		switch {
		case stdslices.ContainsFunc(s.Users[:i], func(o User) bool { return o.Prefix == u.Prefix }):
			c.errorf(s, "user %s has two weights", u.Prefix)
		case u.Prefix.Bits() > bits:
			c.errorf(s, "user %s: users are distinguished by %d bits", u.Prefix, bits)
		case len(own) > 0 && !stdslices.ContainsFunc(own, func(o netip.Prefix) bool { return covers(o, u.Prefix) }):
			c.errorf(s, "user %s does not belong to it", u.Prefix)
		}
	}
}

// claim refuses what belongs to another slice already.
func (c *checker) claim(s *Slice) {
	list := conditions(&s.Match)
	if list == nil {
		c.errorf(s, "its lists make more than %d combinations", mostConditions)
	}
	for _, k := range list {
		if first := c.rules[k]; first != nil && first != s {
			c.errorf(s, "the same belongs to slice %s in line %d", first.Name, first.line)
			return
		}
		c.rules[k] = s
	}
}

// mostConditions of one slice.
const mostConditions = 1 << 20

func conditions(m *Match) []condition {
	size := 1
	for _, n := range []int{len(m.Interfaces), len(m.VLANs), len(m.Marks), len(m.Sources), len(m.Destinations)} {
		if size *= max(1, n); size > mostConditions {
			return nil
		}
	}
	list := []condition{{}}
	list = times(list, m.Interfaces, func(c *condition, v string) { c.interfaces = v })
	list = times(list, m.VLANs, func(c *condition, v uint64) { c.vlan = fmt.Sprint(v) })
	list = times(list, m.Marks, func(c *condition, v uint64) { c.mark = fmt.Sprint(v) })
	list = times(list, m.Sources, func(c *condition, v netip.Prefix) { c.source = v })
	return times(list, m.Destinations, func(c *condition, v netip.Prefix) { c.destination = v })
}

// times is every condition with every value; with no values, the conditions as they are.
func times[C, V any](list []C, values []V, set func(*C, V)) []C {
	if len(values) == 0 {
		return list
	}
	var out []C
	for _, c := range list {
		for _, v := range values {
			set(&c, v)
			out = append(out, c)
		}
	}
	return out
}

// Rate writes bytes a second in bits a second.
func Rate(bytes float64) string {
	bits := bytes * 8
	for _, u := range []struct {
		least float64
		name  string
	}{{1e9, "Gbit"}, {1e6, "Mbit"}, {1e3, "kbit"}} {
		if bits >= u.least {
			return fmt.Sprintf("%.6g%s", bits/u.least, u.name)
		}
	}
	return fmt.Sprintf("%.6gbit", bits)
}
