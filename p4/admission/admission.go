// Package admission is shared by the twins of precision and hhh: a key enters in a second pass, with a probability given by the smaller counter.
package admission

import (
	"fmt"
	"net/netip"

	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Count compares a counter of the host with the actions of a twin's outcome.
func Count(name string, index int, actions ...string) twin.Count {
	return twin.Count{Table: name + ".outcome.outcomes", Actions: actions, Host: name + "_counts", Index: index}
}

// Sizes of every magnitude, of entries without a key: they decide admission. They differ by less than 2^31, since the twin
// finds the smaller one by a sign.
func Sizes(name string) func(register string, i int) uint64 {
	return func(register string, i int) uint64 {
		switch {
		case register == name+"_c0" && i%64 != 63:
			n := uint64(i) * 9 % 224
			return (8 + n%8) << (n / 8)
		case register == name+"_c1" && i%4 != 3:
			return 1<<31 - 1
		}
		return 0
	}
}

// Packets of Full, and the number of entries.
const (
	fullFlows  = 300
	fullBefore = 10 // packets per flow, of which some are admitted
	fullAfter  = 32 // of which a hierarchy counts a part at the level that is stored
	newFlows   = 40
	heldFlows  = 3 // per way
	fewEntries = 1024
	full       = 1<<32 - 1
	nearlyFull = full - 2
)

// Full drives counters of stored keys to saturation, one after the other, in the form with few entries only.
func Full(name string) func(d twin.Driver, _ twin.Form) error {
	return func(d twin.Driver, _ twin.Form) error {
		counters := []string{name + "_c0", name + "_c1"}
		if len(d.Read(counters[0])) > fewEntries {
			return nil
		}
		for range fullBefore {
			for n := range fullFlows {
				if err := d.Send(packetOf(d, n)); err != nil {
					return err
				}
			}
		}
		found, err := held(d, counters)
		if err != nil {
			return err
		}
		for _, f := range found {
			if err := d.Write(f.register, f.at, nearlyFull); err != nil {
				return err
			}
		}
		for range fullAfter {
			for _, f := range found {
				if err := d.Send(packetOf(d, f.flow)); err != nil {
					return err
				}
			}
		}
		if err := d.Compare(); err != nil {
			return err
		}
		return refused(d, counters)
	}
}

// refused sends packets of new keys while all counters are full, or all of one way nearly so: the value that a key would get saturates, too.
func refused(d twin.Driver, counters []string) error {
	next := fullFlows
	for _, fill := range [][2]uint64{{full, full}, {full, nearlyFull}, {nearlyFull, full}} {
		for way, c := range counters {
			for i := range d.Read(c) {
				if err := d.Write(c, i, fill[way]); err != nil {
					return err
				}
			}
		}
		for range newFlows {
			if err := d.Send(packetOf(d, next)); err != nil {
				return err
			}
			next++
		}
	}
	return nil
}

// place of a stored flow.
type place struct {
	flow     int
	register string
	at       int
}

// held finds flows whose packet adds to a counter. No other flow sends packets afterwards: a counter that is 2^31 above the other one
// would be taken for the smaller one.
func held(d twin.Driver, counters []string) (found []place, err error) {
	var ways [2]int
	for n := 0; n < fullFlows && min(ways[0], ways[1]) < heldFlows; n++ {
		before := [][]uint64{d.Read(counters[0]), d.Read(counters[1])}
		for range 2 { // the first one may have been admitted
			if err := d.Send(packetOf(d, n)); err != nil {
				return nil, err
			}
		}
		for way, c := range counters {
			if at := counted(before[way], d.Read(c)); at >= 0 && ways[way] < heldFlows {
				found = append(found, place{n, c, at})
				ways[way]++
			}
		}
	}
	return found, nil
}

// counted is the index of the counter that increased by two, as that of a stored key does; -1: none.
func counted(before, after []uint64) int {
	for i, v := range after {
		if v == before[i]+2 {
			return i
		}
	}
	return -1
}

// packetOf is a packet of a flow, a microsecond after the one before. Flows that come after the first ones share no prefix with them.
func packetOf(d twin.Driver, n int) packet.Packet {
	first := byte(90)
	if n >= fullFlows {
		first = byte(100 + n%100)
	}
	return packet.Packet{Time: d.Now() + 1000, Valid: packet.IP | packet.Ports | packet.UDP | packet.IPID, Proto: 17, Segs: 1, SrcPort: uint16(n), DstPort: 9,
		Src: netip.AddrFrom4([4]byte{first, byte(n % 7), byte(n % 31), byte(n)}), Dst: netip.AddrFrom4([4]byte{91, 0, 0, 1})}
}

// Saturated converts a host's word: the twin's counters saturate at 32 bits.
func Saturated(name string) func(register string, word uint64) uint64 {
	return func(register string, word uint64) uint64 {
		if register == name+"_c0" || register == name+"_c1" {
			return min(word, 1<<32-1)
		}
		return word
	}
}

// Native is a host's word of a twin's: the same, without what a host's counter was above a full one.
func Native(_ string, word uint64, _ func(string) uint64) uint64 { return word }

// Unreachable entries: no counter is as small as seven, since the initial value is larger, and none is 2^31 above another.
func Unreachable() (rows []string) {
	row := func(low uint64, mask uint32) {
		rows = append(rows, fmt.Sprintf("admission [{%d %d 0 false}]", low, mask))
	}
	for n := range uint64(8) {
		row(n, 1<<32-1)
		row((8+n)<<28, 15<<28)
	}
	return rows
}

// roleTake is the role of a second pass into way 0, in p4/include/ways.p4.
const roleTake = 2

// Second is what a clone contains for its second pass. more adds the twin's own fields; nil: none.
func Second(more func(s *twin.Seen, f twin.Fields)) []twin.Emit {
	return []twin.Emit{{Header: "second_pass_h", Want: func(s *twin.Seen) twin.Fields {
		if s.PHV.Pass == 0 {
			return nil
		}
		f := twin.Fields{"value": s.PHV.Carry[1] - s.Constant("ways_initial"), "way": roleTake + s.PHV.Carry[0]&(1<<32-1), "pad": 0, "bank": uint64(s.PHV.Bank)}
		if more != nil {
			more(s, f)
		}
		return f
	}}}
}
