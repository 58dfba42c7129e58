package ahab

import (
	"math"
	"net/netip"
	"slices"

	"github.com/xdpmon/xdpmon/maps/prefix"
	files "github.com/xdpmon/xdpmon/userspace/ahab/slices"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Oracle implements algo.OracleProvider: a filter for every user, and max-min of what they hold at the beginning of every epoch. What a slice may take
// is what the control loop grants at that time.
func (i *instance) Oracle() algo.Oracle {
	o := &oracle{config: i.config, slices: make([]exactSlice, len(i.slices))}
	if i.everything == 0 {
		members, err := prefix.Build(i.plan.Roots, i.plan.Rules, prefix.MaxWords)
		if err != nil {
			i.notify("ahab: no truth: %v", err)
			return nil
		}
		o.members = members
	}
	for n := range o.slices {
		o.slices[n] = exactSlice{users: map[exactUser]*exactRate{}, limit: math.Inf(1), above: map[exactUser]bool{}}
	}
	return o
}

type oracle struct {
	*config
	members *prefix.Trie // nil: everything is one slice
	slices  []exactSlice
}

// member is whose packet it is; 0: in no slice.
func (o *oracle) member(p *packet.Packet) uint64 {
	if o.members == nil {
		return o.everything
	}
	vlan := uint32(files.NoVLAN)
	if p.Has(packet.VLAN) {
		vlan = uint32(p.VLAN)
	}
	slice, weight := files.Find(o.members, vlan, p.Src, p.Dst)
	if slice == 0 {
		return 0
	}
	return uint64(slice) | uint64(weight)<<16 | o.config.slices[slice].user
}

// exactUser is whoever is charged.
type exactUser struct {
	src, dst     netip.Addr
	sport, dport uint16
	proto        uint8
}

// exactRate is an ideal filter, in units for a weight of 1.
type exactRate struct {
	value float64
	at    int64
}

type exactSlice struct {
	users        map[exactUser]*exactRate
	above        map[exactUser]bool // in this window
	limit        float64            // of this epoch, in units; +Inf: nobody is limited
	epoch        int64              // when it began
	offered, due float64            // bytes of this window
	scratch      []float64
}

func (o *oracle) userOf(p *packet.Packet, member uint64) exactUser {
	front := func(a netip.Addr) netip.Addr {
		bits := int(member>>34) & 0xff
		if a.Is4() {
			bits = int(member>>28) & 0x3f
		}
		prefix, err := a.Prefix(min(bits, a.BitLen()))
		if err != nil {
			return a
		}
		return prefix.Addr()
	}
	switch member >> 26 & 3 {
	case userSource:
		return exactUser{src: front(p.Src)}
	case userDestination:
		return exactUser{dst: front(p.Dst)}
	}
	return exactUser{p.Src, p.Dst, p.SrcPort, p.DstPort, p.Proto}
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) {
	if !p.Has(packet.IP) {
		return
	}
	member := o.member(p)
	if member == 0 {
		return
	}
	n := int(member & 0xffff)
	s := &o.slices[n]
	if p.Time-s.epoch >= int64(o.epoch) {
		s.begin(p.Time, o.units(n).Limit(float64(o.config.slices[n].capacity)), o.tau.Seconds()*1e9)
	}
	who, length := o.userOf(p, member), float64(p.Len)
	u := s.users[who]
	if u == nil {
		u = &exactRate{at: p.Time}
		s.users[who] = u
	}
	u.value = u.now(p.Time, float64(o.tau)) + length*(1<<lengthShift)*float64(o.norm(n))/(1<<16)/float64(max(1, member>>16&0x3ff))
	u.at = p.Time
	s.offered += length
	if u.value > s.limit {
		s.due += length * (1 - s.limit/u.value)
		s.above[who] = true
	}
}

// now is what a filter holds at a time.
func (r *exactRate) now(at int64, tau float64) float64 {
	return r.value * math.Exp(-float64(max(0, at-r.at))/tau)
}

// begin an epoch: who has been silent for twenty times tau is forgotten, and the limit is where the rates that are cut off at it add up to the capacity.
func (s *exactSlice) begin(at int64, capacity, tau float64) {
	s.epoch, s.scratch = at, s.scratch[:0]
	for who, u := range s.users {
		if float64(at-u.at) > 20*tau {
			delete(s.users, who)
			continue
		}
		s.scratch = append(s.scratch, u.now(at, tau))
	}
	s.limit = math.Inf(1)
	if capacity > 0 {
		s.limit = maxMin(s.scratch, capacity)
	}
}

// maxMin is the limit at which rates add up to the capacity; +Inf where they do not reach it. It sorts the rates.
func maxMin(rates []float64, capacity float64) float64 {
	slices.Sort(rates)
	left := capacity
	for i, r := range rates {
		if share := left / float64(len(rates)-i); r > share {
			return share
		}
		left -= r
	}
	return math.Inf(1)
}

// Window implements algo.Oracle.
func (o *oracle) Window(w report.Window) report.Body {
	t := &contents{seconds: float64(w.End-w.Start) / 1e9}
	table := report.Table{Name: "slices", Title: "slices", Limit: o.top, Settings: true, Columns: []report.Column{
		{Name: "slice", Label: true}, {Name: "capacity", Unit: report.BitRate}, {Name: "demand", Unit: report.BitRate},
		{Name: "limit", Unit: report.BitRate}, {Name: "users_above", Unit: report.Count}, {Name: "dropped_bytes", Unit: report.Bytes}}}
	var offered, due float64
	above := 0
	for n := range o.slices {
		s := &o.slices[n]
		if n > 0 && o.config.slices[n].name != "" {
			limit := o.units(n).bitRate(s.limit)
			if math.IsInf(s.limit, 1) {
				limit = math.NaN()
			}
			table.Rows = append(table.Rows, []any{o.config.slices[n].name, 8 * o.config.slices[n].capacity, t.rate(uint64(s.offered)), limit, uint64(len(s.above)), uint64(s.due)})
		}
		offered, due, above = offered+s.offered, due+s.due, above+len(s.above)
		s.offered, s.due = 0, 0
		clear(s.above)
	}
	return report.Body{Values: []report.Value{
		{Name: "demand", Value: t.rate(uint64(offered)), Unit: report.BitRate, Help: "what arrived, in bits a second"},
		{Name: "offered_bytes", Value: uint64(offered), Unit: report.Bytes, Kind: report.Counter, Help: "bytes that arrived"},
		{Name: "dropped_bytes", Value: uint64(due), Unit: report.Bytes, Kind: report.Counter, Help: "bytes that 1 - limit / rate drops of every packet, TCP too, by exact rates and an exact limit"},
		{Name: "users_above", Value: uint64(above), Unit: report.Count, Help: "users whose exact rate was above the exact limit"},
	}, Tables: []report.Table{table}}
}
