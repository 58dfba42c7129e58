package ahab

import (
	"fmt"
	"math/bits"
	"net/netip"

	bpf "github.com/xdpmon/xdpmon/bpf/ahab"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/ahab"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// headers that the twin makes: bridged in front of every packet, and what a clone carries back.
var headers = []twin.Emit{{Header: "bridged_h", Want: bridged}, {Header: "second_pass_h", Want: second, View: clipped}}

// remembered are arrays whose words decide about a packet, and are others after it.
var remembered = []string{"ahab_limit", "ahab_epochs"}

// Numbers of p4/ahab/question.p4, and what a user is in a membership.
const (
	frontSecond = 1
	kindOther   = 0
	kindData    = 1
	kindBare    = 2
	least       = 16
	ratioBits   = 6
	userFlow    = 0
	userSource  = 1
)

// memberOf are memberships by configuration: the same for all packets of a run.
var memberOf = map[string]func(p *packet.Packet) uint64{}

func membership(s *twin.Seen) uint64 {
	if !s.Given || !s.Packet.Has(packet.IP) {
		return 0
	}
	key := s.Values.Text("config") + s.Values.Text("capacity")
	of, known := memberOf[key]
	if !known {
		var err error
		if of, err = ahab.TwinMembers(s.Values); err != nil {
			s.Err = err
			return 0
		}
		memberOf[key] = of
	}
	return of(&s.Packet)
}

func bridged(s *twin.Seen) twin.Fields {
	f := twin.Fields{"front": 0, "session": 0, "pad_0": 0, "counted": 0, "pad_1": 0, "open": 0, "pad_2": 0, "discard": twin.Flag(s.Unclaimed),
		"kind": kind(s), "epochs": 0, "slice": 0, "low": 0, "mid": 0, "high": 0, "flow": 0, "debt": 0, "len": 0, "amount": 0, "limit": 0}
	member := membership(s)
	slice := int(member & 0xffff)
	if slice == 0 || s.Err != nil {
		return f
	}
	var lease bpf.AhabAhabLeaseT
	s.Get("ahab_lease", 0, &lease)
	length := uint64(s.PHV.Len)
	f["session"], f["counted"], f["slice"], f["open"] = s.Session(), 1, uint64(slice), twin.Flag(s.PHV.Now > lease.Until)
	f["len"], f["amount"], f["limit"] = length, length<<4, s.Before("ahab_limit", slice)
	f["debt"] = length >> min(8, 2*(bits.Len64(member>>16&0x3ff|1)-1))
	f["epochs"] = epochsSince(uint32(s.PHV.Now>>20) - uint32(s.Before("ahab_epochs", slice)))
	words := userWords(&s.Packet, member)
	f["flow"] = uint64(twin.Hash(3, words...) & 0xffff)
	f["low"], f["mid"], f["high"] = shares(s, slice, words, uint32(f["limit"]))
	return f
}

func kind(s *twin.Seen) uint64 {
	switch {
	case !s.Given || !s.Packet.Has(packet.TCP):
		return kindOther
	case s.Packet.Payload == 0:
		return kindBare
	}
	return kindData
}

// epochsSince the sums were taken away, as the header has them.
func epochsSince(n uint32) uint64 {
	switch {
	case n < 2:
		return uint64(n)
	case n < 4:
		return 2
	case n < 16:
		return 3
	}
	return 4
}

// userWords are what rows are hashed over: both addresses and the ports, or one address as far as it distinguishes users; the slice.
func userWords(p *packet.Packet, member uint64) []uint32 {
	words := make([]uint32, 11)
	words[10] = uint32(member & 0xffff)
	src, dst := p.Src.As16(), p.Dst.As16()
	switch member >> 26 & 3 {
	case userFlow:
		copy(words, append(twin.Words(src[:]), twin.Words(dst[:])...))
		words[8] = uint32(p.SrcPort)<<16 | uint32(p.DstPort)
	case userSource:
		copy(words, front(p.Src, member))
	default:
		copy(words[4:], front(p.Dst, member))
	}
	return words
}

// front of an address that distinguishes users.
func front(a netip.Addr, member uint64) []uint32 {
	n := int(member >> 34 & 0xff)
	if a.Is4() {
		n = 96 + int(member>>28&0x3f)
	}
	b := a.As16()
	for i := range b {
		if used := min(8, max(0, n-8*i)); used < 8 {
			b[i] &^= 0xff >> used
		}
	}
	return twin.Words(b[:])
}

// shares are this packet's number less what the lower, the middle and the upper limit let pass, in 16 bits.
func shares(s *twin.Seen, slice int, words []uint32, limit uint32) (low, mid, high uint64) {
	rate := ^uint32(0)
	for row := range 3 {
		name := fmt.Sprintf("ahab_row%d", row)
		rate = min(rate, uint32(s.At(name, int(twin.Hash(row, words...)&0xffff)&int(s.Constant(name+"_entries")-1))))
	}
	number := s.At("ahab_weyl", slice) >> 17
	step := uint32(1) << (bits.Len32(limit|least) - 2)
	less := func(limit uint32) uint64 { return (number - s.In("ahab_ratio", ratioIndex(limit, rate))) & 0xffff }
	return less(limit - step), less(limit), less(limit + step)
}

// ratioIndex is where the host's table has min(1, n / d).
func ratioIndex(n, d uint32) int {
	shift := max(0, bits.Len32(d|1)-ratioBits)
	return int(min(n>>shift, 1<<ratioBits-1)<<ratioBits | d>>shift&(1<<ratioBits-1))
}

// second is what the clone of a packet carries that takes the sums away.
func second(s *twin.Seen) twin.Fields {
	if s.PHV.Pass == 0 {
		return nil
	}
	var slice bpf.AhabAhabSlice
	s.Get("ahab_slices", int(s.PHV.Carry[0]), &slice)
	return twin.Fields{"front": frontSecond, "pad": 0, "slice": s.PHV.Carry[0], "limit": s.PHV.Carry[1], "ceiling": uint64(slice.Ceiling)}
}

// clipped: the host carries a limit within its bounds, the twin clips it in the second pass.
func clipped(want, mine twin.Fields) { mine["limit"] = min(mine["limit"]|least, want["ceiling"]) }
