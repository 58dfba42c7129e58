package ahab

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	bpf "github.com/xdpmon/xdpmon/bpf/ahab"
)

// allSamples is a share of all packets, in 2^-16.
const allSamples = 1 << 16

// wantedSamples are enough for a list of a window, and what the ring and the control loop bear.
const wantedSamples = 20000

// user is who a sample was of, in words of a snapshot: addresses, then family, protocol and ports, then slice and weight.
type user [6]uint64

// seen is what samples show of a user.
type seen struct {
	n, dropped    uint64  // samples
	bytes         uint64  // ... of as many bytes
	rate, squares float64 // sums, of rates in units
	limit         float64
}

// people are the users above the limit in a window.
type people map[user]*seen

// mostPeople bounds what one window remembers.
const mostPeople = 65536

// shareAfter is the share of the next window that makes as many samples as are wanted of what arrived in this one, those that found no room among them: they cost
// a packet as much as others do.
func shareAfter(share, samples uint64) uint64 {
	return min(allSamples, max(1, share*wantedSamples/max(1, samples)))
}

// drain takes samples out of the ring.
func (i *instance) drain() error {
	size := int(unsafe.Sizeof(bpf.AhabAhabSample{}))
	return i.ring.Drain(func(record []byte) {
		if len(record) >= size {
			r := (*bpf.AhabAhabSample)(unsafe.Pointer(unsafe.SliceData(record)))
			i.meet(i.seen.add(r))
		}
	})
}

// add counts a sample, and returns whose it is.
func (p people) add(r *bpf.AhabAhabSample) (who user) {
	who = identity(r)
	s := p[who]
	if s == nil {
		if len(p) >= mostPeople {
			return who
		}
		s = &seen{}
		p[who] = s
	}
	s.n++
	s.bytes += uint64(r.Len)
	if r.Deed == uint8(bpf.AhabAhabDeedAHAB_DROPPED) {
		s.dropped++
	}
	s.rate += float64(r.Rate)
	s.squares += float64(r.Rate) * float64(r.Rate)
	s.limit += float64(r.Limit)
	return who
}

// pair is the user of a slice who was above the limit last, and who was before it.
type pair struct {
	who             user
	last, otherLast int64 // ns; when another than who was above
}

// meet takes a user who is above the limit.
func (p *pair) meet(who user, now int64) {
	if who != p.who {
		p.who, p.otherLast = who, p.last
	}
	p.last = now
}

// meet takes a user who was above its slice's limit since the last tick.
func (i *instance) meet(who user) {
	p := i.pairs[who.slice()]
	if p == nil {
		p = &pair{}
		i.pairs[who.slice()] = p
	}
	p.meet(who, i.now)
}

// lately is how long a user is remembered: some time-outs of TCP.
const lately = int64(time.Second)

// Crowded implements control.Registers.
func (i *instance) Crowded(n int, now int64) bool {
	p := i.pairs[n]
	return p != nil && p.otherLast > now-lately
}

// identity leaves of a packet what makes its user.
func identity(r *bpf.AhabAhabSample) (u user) {
	kind := int(r.Member>>26) & 3
	bits := int(r.Member>>34) & 0xff
	if r.Family == 4 {
		bits = 96 + int(r.Member>>28)&0x3f
	}
	tag := uint64(r.Family) << 40
	if kind == userFlow {
		tag |= uint64(r.Proto)<<32 | uint64(r.Sport)<<16 | uint64(r.Dport)
		bits = 128
	}
	if kind != userDestination {
		u[0], u[1] = address(r.Src, bits)
	}
	if kind != userSource {
		u[2], u[3] = address(r.Dst, bits)
	}
	u[4] = tag | uint64(kind)<<48 | uint64(bits)<<56
	u[5] = uint64(r.Slice) | (r.Member>>16&0x3ff)<<16
	return u
}

// address is the front of an address in network order.
func address(words [4]uint32, bits int) (high, low uint64) {
	var b [16]byte
	for i, w := range words {
		binary.NativeEndian.PutUint32(b[4*i:], w)
	}
	p, _ := netip.AddrFrom16(b).Prefix(min(bits, 128))
	b = p.Masked().Addr().As16()
	return binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
}

// slice and weight of the user.
func (u user) slice() int      { return int(u[5] & 0xffff) }
func (u user) weight() float64 { return max(1, float64(u[5]>>16&0x3ff)) }

// name is the user for people.
func (u user) name() string {
	kind, bits := int(u[4]>>48)&3, int(u[4]>>56)
	at := func(high, low uint64) netip.Addr {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], high)
		binary.BigEndian.PutUint64(b[8:], low)
		return netip.AddrFrom16(b).Unmap()
	}
	one := func(a netip.Addr) string {
		if a.Is4() {
			bits -= 96
		}
		if bits >= a.BitLen() {
			return a.String()
		}
		return fmt.Sprintf("%s/%d", a, max(0, bits))
	}
	switch kind {
	case userSource:
		return one(at(u[0], u[1]))
	case userDestination:
		return one(at(u[2], u[3]))
	}
	src, dst := netip.AddrPortFrom(at(u[0], u[1]), uint16(u[4]>>16)), netip.AddrPortFrom(at(u[2], u[3]), uint16(u[4]))
	return fmt.Sprintf("%s > %s/%d", src, dst, uint8(u[4]>>32))
}

// personWords are 64-bit words of a user in a snapshot.
const personWords = 12

// words are the users as a snapshot keeps them, the most often seen first.
func (p people) words() []uint64 {
	list := make([]user, 0, len(p))
	for u := range p {
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b user) int {
		return cmp.Or(cmp.Compare(p[b].bytes, p[a].bytes), slices.Compare(a[:], b[:]))
	})
	words := make([]uint64, 0, personWords*len(list))
	for _, u := range list {
		s := p[u]
		words = append(append(words, u[:]...), s.n, s.dropped, s.bytes,
			math.Float64bits(s.rate), math.Float64bits(s.squares), math.Float64bits(s.limit))
	}
	return words
}

// peopleOf are the users of a snapshot.
func peopleOf(rows [][]uint64) people {
	p := people{}
	for _, row := range rows {
		p[user(row[:6])] = &seen{row[6], row[7], row[8], math.Float64frombits(row[9]), math.Float64frombits(row[10]), math.Float64frombits(row[11])}
	}
	return p
}

// adapt begins a new list, with as many samples as the last window lets expect to be wanted.
func (i *instance) adapt(lost uint64) error {
	n := uint64(0)
	for _, s := range i.seen {
		n += s.n
	}
	clear(i.seen)
	i.share = shareAfter(i.share, n+lost)
	var lease bpf.AhabAhabLeaseT
	if err := i.arrays["ahab_lease"].Map().Lookup(uint32(0), &lease); err != nil {
		return fmt.Errorf("read lease: %w", err)
	}
	return i.renew(int64(lease.Until))
}
