// Package references holds what is compared with and knows no memory rules: Space-Saving, RAP, MST and RHHH in plain Go.
package references

import (
	"encoding/binary"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// MST counts the prefixes of an IPv4 source in one Space-Saving a level (section 3.2), and RHHH, which draws one level a
// packet. References for hhh.
type MST struct {
	step   int            // bits of a level
	levels []*SpaceSaving // step, 2 step ... 32 bits
	draw   func() int     // of a level from 0 on; nil: all
	total  float64
}

// NewMST divides entries among the levels of bytes.
func NewMST(entries int) *MST { return NewMSTBy(8, entries) }

// NewMSTBy divides entries among levels of so many bits.
func NewMSTBy(step, entries int) *MST {
	m := &MST{step: step, levels: make([]*SpaceSaving, 32/step)}
	for i := range m.levels {
		m.levels[i] = NewSpaceSaving(entries / len(m.levels))
	}
	return m
}

// NewRHHH draws a level for every packet: draw returns 0 to 3.
func NewRHHH(entries int, draw func() int) *MST {
	m := NewMST(entries)
	m.draw = draw
	return m
}

// Add counts a packet.
func (m *MST) Add(src netip.Addr) {
	m.total++
	if m.draw != nil {
		m.add(m.draw(), src)
		return
	}
	for level := range m.levels {
		m.add(level, src)
	}
}

func (m *MST) add(level int, src netip.Addr) {
	b := src.As4()
	w := binary.BigEndian.Uint32(b[:]) &^ (1<<(32-m.step*(level+1)) - 1)
	m.levels[level].Add(heavy.Key{uint64(w), 1})
}

// Counts returns the estimates of all prefixes; the root is exact.
func (m *MST) Counts() map[heavy.Prefix]float64 {
	counts := map[heavy.Prefix]float64{{Src: netip.PrefixFrom(netip.IPv4Unspecified(), 0)}: m.total}
	factor := 1.0
	if m.draw != nil {
		factor = float64(len(m.levels))
	}
	for level, s := range m.levels {
		for key, n := range s.Counts() {
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], uint32(key[0]))
			counts[heavy.Prefix{Src: netip.PrefixFrom(netip.AddrFrom4(b), m.step*(level+1))}] = n * factor
		}
	}
	return counts
}
