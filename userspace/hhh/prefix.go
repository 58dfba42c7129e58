package hhh

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// prefixOf decodes a key of the data plane: truncated addresses, and the levels in the tag.
func (c *config) prefixOf(k heavy.Key) heavy.Prefix {
	src, dst := c.ways.Spec.Addrs(k)
	tag := k[1]
	return c.prefix(src, dst, int(tag>>8&0xff), int(tag>>16&0xff))
}

func (c *config) prefix(src, dst netip.Addr, srcLevel, dstLevel int) (p heavy.Prefix) {
	if c.ways.Spec.Fields&heavy.Src != 0 {
		p.Src = netip.PrefixFrom(src, srcLevel*c.step).Masked()
	}
	if c.ways.Spec.Fields&heavy.Dst != 0 {
		p.Dst = netip.PrefixFrom(dst, dstLevel*c.step).Masked()
	}
	return p
}

// root of a family's hierarchy.
func (c *config) root(v4 bool) heavy.Prefix {
	any := netip.IPv6Unspecified()
	if v4 {
		any = netip.IPv4Unspecified()
	}
	return c.prefix(any, any, 0, 0)
}

// ancestors calls f for every node above a pair of addresses, including the root.
func (c *config) ancestors(src, dst netip.Addr, f func(heavy.Prefix)) {
	n := c.levels6
	if src.Is4() {
		n = c.levels4
	}
	last := func(field heavy.Fields) int {
		if c.ways.Spec.Fields&field == 0 {
			return 0
		}
		return n
	}
	for s := 0; s <= last(heavy.Src); s++ {
		for d := 0; d <= last(heavy.Dst); d++ {
			f(c.prefix(src, dst, s, d))
		}
	}
}
