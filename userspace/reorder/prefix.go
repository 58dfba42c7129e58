package reorder

import (
	"encoding/binary"
	"net/netip"
)

// pack writes a source's prefix as the data plane does: IPv4 in 32 bits, IPv6 in its first 48.
func (c *config) pack(a netip.Addr) uint64 {
	if a.Is4() {
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:]) & (^uint32(0) << (32 - c.bits4)))
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[:]) & (^uint64(0) << (64 - c.bits6)) >> 16
}

// unpack reverses pack. Addresses below ::/16 are reserved, so a word that fits into 32 bits is IPv4.
func (c *config) unpack(word uint64) netip.Prefix {
	if word>>32 == 0 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(word))
		return netip.PrefixFrom(netip.AddrFrom4(b), c.bits4)
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], word<<16)
	return netip.PrefixFrom(netip.AddrFrom16(b), c.bits6)
}
