package capture

import (
	"iter"
	"math/bits"
)

// Option codes.
const (
	optionEnd       = 0
	optionFlags     = 2  // of a packet
	optionTsresol   = 9  // of an interface
	optionTsoffset  = 14 // of an interface
	flagDirection   = 3  // bits 0 and 1 of the flags
	flagOutbound    = 2
	interfaceHeader = 8 // bytes in front of an interface's options
	// maxInterfaces of a section: what the obsolete packet block can number, and far more than any host has.
	maxInterfaces = 1 << 16
)

// ngInterface holds the fields of an interface description that its packets need.
type ngInterface struct {
	link   uint32
	snap   uint32
	units  uint64 // of its clock, per second
	offset int64  // seconds to add
}

// options yields code and value of each option; it stops at the end mark and at the first one that does not fit.
func (p *pcapng) options(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			code, size := p.order.u16(b), int(p.order.u16(b[2:]))
			b = b[4:]
			if code == optionEnd || size > len(b) || !yield(code, b[:size]) {
				return
			}
			b = b[min((size+3)&^3, len(b)):]
		}
	}
}

// outbound reads the direction from a packet's options.
func (p *pcapng) outbound(options []byte) bool {
	for code, value := range p.options(options) {
		if code == optionFlags && len(value) >= 4 {
			return p.order.u32(value)&flagDirection == flagOutbound
		}
	}
	return false
}

func (p *pcapng) addInterface(body []byte) error {
	if len(body) < interfaceHeader {
		return damaged("interface description of %d bytes", len(body)+blockOverhead)
	}
	if len(p.ifaces) == maxInterfaces {
		return damaged("section that describes more than %d interfaces", maxInterfaces)
	}
	iface := ngInterface{link: uint32(p.order.u16(body)), snap: p.order.u32(body[4:]), units: 1e6}
	for code, value := range p.options(body[interfaceHeader:]) {
		switch {
		case code == optionTsresol && len(value) >= 1:
			units, err := resolution(value[0])
			if err != nil {
				return err
			}
			iface.units = units
		case code == optionTsoffset && len(value) >= 8:
			iface.offset = int64(p.order.u64(value))
		}
	}
	p.ifaces = append(p.ifaces, iface)
	return nil
}

// resolution turns if_tsresol into units a second: 10^n, or 2^n when the highest bit is set.
func resolution(v byte) (uint64, error) {
	n := v & 0x7f
	if v&0x80 != 0 {
		if n > 63 {
			return 0, damaged("interface with a clock of 2^-%d s, 2^-63 s is the finest that fits", n)
		}
		return 1 << n, nil
	}
	if n > 19 {
		return 0, damaged("interface with a clock of 10^-%d s, 10^-19 s is the finest that fits", n)
	}
	units := uint64(1)
	for range n {
		units *= 10
	}
	return units, nil
}

// ns converts a time of this interface's clock to nanoseconds since 1970.
func (i *ngInterface) ns(ticks uint64) int64 {
	if i.offset == 0 && i.units == 1e6 && ticks < 1<<53 {
		return int64(ticks * 1000)
	}
	sec, rest := ticks/i.units, ticks%i.units
	hi, lo := bits.Mul64(rest, 1e9)
	frac, _ := bits.Div64(hi, lo, i.units) // rest < units, so the quotient is below 10^9
	hi, lo = bits.Mul64(sec+uint64(i.offset), 1e9)
	lo, carry := bits.Add64(lo, frac, 0)
	return clampTime(hi+carry, lo)
}
