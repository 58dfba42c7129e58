package beaucoup

import (
	"math/rand/v2"
	"net/netip"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// gap between packets, ns.
const gap = 2000

// fresh is packets of keys in turn, each with fields that none of the key's packets had before: a draw for every attribute.
// The key is the VLAN, from 1. After each packets of every key all restart, in a window of the session.
type fresh struct {
	keys, each, windows int
	sent                int
	rng                 *rand.Rand
	step                []uint32 // of the key's ports
}

func newFresh(seed uint64, keys, each, windows int) *fresh {
	f := &fresh{keys: keys, each: each, windows: windows, rng: rand.New(rand.NewPCG(seed, 2)), step: make([]uint32, 2*keys)}
	for i := range f.step {
		f.step[i] = f.rng.Uint32() | 1
	}
	return f
}

// window of the session, ns.
func (f *fresh) window() int64 { return int64(f.keys*f.each) * gap }

// Next implements traffic.Model.
func (f *fresh) Next(p *packet.Packet) bool {
	if f.sent == f.keys*f.each*f.windows {
		return false
	}
	key, n := f.sent%f.keys, uint32(f.sent/f.keys)
	*p = blank(int64(f.sent))
	p.Src, p.Dst = address(f.rng.Uint32()), address(f.rng.Uint32())
	p.SrcPort, p.DstPort = uint16(n*f.step[2*key]), uint16(n*f.step[2*key+1])
	p.VLAN = uint16(1 + key)
	p.Valid |= packet.VLAN
	f.sent++
	return true
}

// count of the packets that a key has sent in a window when one of them is sent.
func (f *fresh) count(time int64) float64 {
	n := int((time - traffic.Start) / gap)
	return float64(n%(f.keys*f.each)/f.keys + 1)
}

// blank is the nth packet, a SYN, without addresses.
func blank(n int64) packet.Packet {
	return packet.Packet{Time: traffic.Start + n*gap, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1,
		TCPFlags: packet.SYN, Len: 54}
}

// address is a unicast address: all but a few bits are free.
func address(x uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{16 + byte(x>>24)&127, byte(x >> 16), byte(x >> 8), byte(x)})
}
