package hhh

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// stack reads the arrays of stacking: hhh_sLkW and hhh_sLcW for level L and way W, and hhh_byte.
type stack struct {
	*config
	arrays map[string]*maps.Array
}

func stackArrays() (names []string) {
	for level := 2; level <= 4; level++ {
		for way := range 2 {
			names = append(names, fmt.Sprintf("hhh_s%dk%d", level, way), fmt.Sprintf("hhh_s%dc%d", level, way))
		}
	}
	return append(names, byteArray)
}

const byteArray = "hhh_byte"

// configure sizes the arrays; without stacking they keep one entry.
func (s *stack) configure(spec *ebpf.CollectionSpec) error {
	for _, name := range stackArrays() {
		n := s.perStack()
		if name == byteArray {
			n = 256
		}
		if !s.stacking {
			n = 1
		}
		if err := maps.SetEntries(spec, name, uint32(n)); err != nil {
			return err
		}
	}
	return maps.SetConstant(spec, "hhh_stack_entries", uint32(s.perStack()))
}

func (s *stack) bind(set *maps.Set) error {
	s.arrays = map[string]*maps.Array{}
	for _, name := range stackArrays() {
		a, err := set.Array(name)
		if err != nil {
			return err
		}
		s.arrays[name] = a
	}
	return nil
}

// read adds the levels of all CPUs and resets them.
func (s *stack) read(bank int) (out seen, err error) {
	words := map[string][][]uint64{}
	for name, a := range s.arrays {
		if words[name], err = a.ReadResetPerCPU(bank); err != nil {
			return out, err
		}
	}
	out = seen{estimates: map[heavy.Prefix]float64{}, smallest: float64(s.ways.Initial)}
	for cpu := range maps.PossibleCPUs() {
		for first, n := range words[byteArray][cpu] {
			if n > 0 {
				out.estimates[s.at(uint32(first)<<24, 8)] += float64(n)
			}
		}
		for level := 2; level <= 4; level++ {
			s.addLevel(&out, level, cpu, words)
		}
	}
	return out, nil
}

// addLevel adds one CPU's records of a level.
func (s *stack) addLevel(out *seen, level, cpu int, words map[string][][]uint64) {
	sum := 0.0
	for way := range 2 {
		counters := words[fmt.Sprintf("hhh_s%dc%d", level, way)][cpu]
		for e, key := range words[fmt.Sprintf("hhh_s%dk%d", level, way)][cpu] {
			if key != 0 {
				out.estimates[s.at(uint32(key>>32), 8*level)] += float64(counters[e])
				out.records++
				sum += float64(counters[e])
			}
		}
	}
	// The smaller of two counters is below their mean.
	out.smallest = max(out.smallest, float64(s.ways.Initial)+sum/float64(2*s.perStack()))
}

func (s *stack) at(addr uint32, bits int) heavy.Prefix {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], addr)
	a := netip.AddrFrom4(b)
	return s.prefix(a, a, bits/8, bits/8)
}
