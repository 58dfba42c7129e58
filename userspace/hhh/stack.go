package hhh

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// stack reads the arrays of stacking: hhh_sLkW and hhh_sLcW for level L and way W, and hhh_byte.
type stack struct {
	*config
	arrays map[string]*maps.Array
}

// stackArrays are those of the first n levels.
func stackArrays(n int) (names []string) {
	for level := range n {
		for way := range 2 {
			names = append(names, fmt.Sprintf("hhh_s%dk%d", level, way), fmt.Sprintf("hhh_s%dc%d", level, way))
		}
	}
	return append(names, byteArray)
}

const byteArray = "hhh_byte"

// configure sizes the arrays; unused ones have one entry.
func (s *stack) configure(spec *ebpf.CollectionSpec) error {
	sizes, used := map[string]uint32{}, 0
	for _, name := range stackArrays(maxStack) {
		sizes[name] = 1
	}
	if s.stacking {
		used = s.stackLevels()
		for _, name := range stackArrays(used) {
			sizes[name] = uint32(s.perStack())
		}
		sizes[byteArray] = 1 << exactBits
	}
	for name, n := range sizes {
		if err := maps.SetEntries(spec, name, n); err != nil {
			return err
		}
	}
	constants := map[constant.Name]any{constant.HhhStackEntries: uint32(s.perStack()), constant.HhhStackLevels: uint32(used), constant.HhhStackFirst: uint32(s.stackFirst())}
	return maps.SetConstants(spec, constants)
}

func (s *stack) bind(set *maps.Set) error {
	s.arrays = map[string]*maps.Array{}
	for _, name := range stackArrays(s.stackLevels()) {
		a, err := set.Array(name)
		if err != nil {
			return err
		}
		s.arrays[name] = a
	}
	return nil
}

// node is a prefix by the first 64 bits of its addresses.
type node struct {
	high uint64
	bits int
}

// levels is what stacking has counted.
type levels struct {
	counts   map[node]uint64
	records  int
	smallest float64 // of two counters that a prefix without an entry competes with, with the initial value
}

// read adds the levels of all CPUs and resets them.
func (s *stack) read(bank int) (*levels, error) {
	words := map[string][][]uint64{}
	for name, a := range s.arrays {
		var err error
		if words[name], err = a.ReadResetPerCPU(bank); err != nil {
			return nil, err
		}
	}
	out := &levels{counts: map[node]uint64{}, smallest: float64(s.ways.Initial)}
	for cpu := range maps.PossibleCPUs() {
		for first, n := range words[byteArray][cpu] {
			if n > 0 {
				s.addExact(out, uint64(first)<<56, n)
			}
		}
		for level := range s.stackLevels() {
			s.addLevel(out, level, cpu, words)
		}
	}
	return out, nil
}

// seen is the input of the report. hosts is their number: competing counters have added up, and so have their initial values.
func (s *stack) seen(l *levels, hosts int) seen {
	out := seen{estimates: map[heavy.Prefix]float64{}, margins: map[heavy.Prefix]margin{}, records: l.records, smallest: l.smallest}
	for at, n := range l.counts {
		out.estimates[s.at(at.high, at.bits)] += float64(n)
	}
	for p, n := range out.estimates {
		if p.Bits() > exactBits {
			out.margins[p] = stacked(n, float64(hosts)*float64(s.ways.Initial), l.smallest)
		}
	}
	return out
}

// addExact adds the count of an address's first byte to all levels that it decides.
func (s *stack) addExact(out *levels, high, n uint64) {
	for bits := s.step; bits <= exactBits; bits += s.step {
		out.counts[node{stackPrefix(high, bits), bits}] += n
	}
}

// addLevel adds one CPU's records of a level.
func (s *stack) addLevel(out *levels, level, cpu int, words map[string][][]uint64) {
	sum, bits := 0.0, s.stackFirst()+level*s.step
	for way := range 2 {
		counters := words[fmt.Sprintf("hhh_s%dc%d", level, way)][cpu]
		for e, key := range words[fmt.Sprintf("hhh_s%dk%d", level, way)][cpu] {
			if key != 0 {
				out.counts[node{stackPrefix(key, bits), bits}] += counters[e]
				out.records++
				sum += float64(counters[e])
			}
		}
	}
	// The smaller of two counters is below their mean.
	out.smallest = max(out.smallest, float64(s.ways.Initial)+sum/float64(2*s.perStack()))
}

// stackPrefix removes a key's marker bit: level_of of bpf/hhh.
func stackPrefix(key uint64, bits int) uint64 {
	if bits == 64 && key == ^uint64(0) {
		return 0
	}
	return key >> (64 - bits) << (64 - bits)
}

// at is the prefix of an address with these first 64 bits.
func (s *stack) at(high uint64, bits int) heavy.Prefix {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], high)
	a := netip.AddrFrom16(b)
	if s.ways.Spec.Family == heavy.IPv4 {
		a = netip.AddrFrom4([4]byte(b[:4]))
	}
	return s.prefix(a, a, bits/s.step, bits/s.step)
}
