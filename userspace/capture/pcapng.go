package capture

import (
	"fmt"
	"io"
	"math"
)

// Block types (pcapng, draft-ietf-opsawg-pcapng, section 4).
const (
	blockSection   = 0x0a0d0d0a // the same in both byte orders
	blockInterface = 1
	blockPacket    = 2 // obsolete, still met
	blockSimple    = 3
	blockEnhanced  = 6
)

const (
	byteOrderMagic = 0x1a2b3c4d
	blockOverhead  = 12 // type, length, and the length again after the body
	enhancedHeader = 20 // interface, time, captured and wire length
)

// pcapng reads the block format: sections with interfaces, each with a link type and a clock of its own.
type pcapng struct {
	order  order
	ifaces []ngInterface
	before uint32 // interfaces of earlier sections: numbering continues, as in Wireshark
	last   int64  // ns; simple packets have no time of their own
}

func (p *pcapng) next(in *input, rec *record) error {
	for {
		kind, size, err := p.blockHeader(in)
		if err != nil {
			return err
		}
		done, err := p.block(in, kind, size, rec)
		if done || err != nil {
			return err
		}
	}
}

// blockHeader returns the type and the whole length of the next block, without consuming anything.
func (p *pcapng) blockHeader(in *input) (kind uint32, size int64, err error) {
	head, err := in.peek(blockOverhead)
	if err == io.EOF {
		return 0, 0, err
	}
	if err != nil {
		return 0, 0, cutOff("a block header", len(head), blockOverhead, err)
	}
	kind = p.order.u32(head)
	if kind == blockSection {
		if p.order, err = sectionOrder(head); err != nil {
			return 0, 0, err
		}
	}
	length := p.order.u32(head[4:])
	if length < blockOverhead {
		return 0, 0, damaged("block of type %#x claims a length of %d bytes, at least %d is possible",
			kind, length, blockOverhead)
	}
	// Some writers forget the padding in the length.
	return kind, (int64(length) + 3) &^ 3, nil
}

func sectionOrder(head []byte) (order, error) {
	switch {
	case little.u32(head[8:]) == byteOrderMagic:
		return little, nil
	case big.u32(head[8:]) == byteOrderMagic:
		return big, nil
	}
	return little, damaged("section header with byte order mark % x", head[8:12])
}

// block handles one block; done reports that it was a packet and rec is filled.
func (p *pcapng) block(in *input, kind uint32, size int64, rec *record) (done bool, err error) {
	switch kind {
	case blockSection, blockInterface, blockEnhanced, blockPacket, blockSimple:
	default:
		return false, p.skipBlock(in, kind, size)
	}
	body, err := p.body(in, kind, size)
	if err != nil {
		return false, err
	}
	switch kind {
	case blockSection:
		return false, p.section(body)
	case blockInterface:
		return false, p.addInterface(body)
	case blockEnhanced:
		return true, p.enhanced(body, rec)
	case blockPacket:
		return true, p.obsolete(body, rec)
	default:
		return true, p.simple(body, rec)
	}
}

func (p *pcapng) skipBlock(in *input, kind uint32, size int64) error {
	if err := in.skip(size); err != nil {
		if err == io.ErrUnexpectedEOF {
			return damaged("file ends inside a block of type %#x with %d bytes", kind, size)
		}
		return err
	}
	return nil
}

// body consumes a block and returns what is between its header and its trailing length.
func (p *pcapng) body(in *input, kind uint32, size int64) ([]byte, error) {
	if size > maxRecord {
		return nil, damaged("block of type %#x claims %d bytes, more than any packet has (%d)", kind, size, maxRecord)
	}
	block, err := in.peek(int(size))
	if err != nil {
		return nil, cutOff("a block", len(block), int(size), err)
	}
	trailer := (int64(p.order.u32(block[size-4:])) + 3) &^ 3
	if trailer != size {
		return nil, damaged("block of type %#x has length %d in front and %d at its end", kind, size, trailer)
	}
	in.advance(int(size))
	return block[8 : size-4], nil
}

// section starts a new section: interface numbers restart in the file, and continue in ours.
func (p *pcapng) section(body []byte) error {
	if len(body) < 8 {
		return damaged("section header of %d bytes", len(body)+blockOverhead)
	}
	if major := p.order.u16(body[4:]); major != 1 {
		return fmt.Errorf("pcapng version %d, only version 1 is known: %w", major, ErrFormat)
	}
	p.before += uint32(len(p.ifaces))
	p.ifaces = p.ifaces[:0]
	return nil
}

func (p *pcapng) enhanced(body []byte, rec *record) error {
	if len(body) < enhancedHeader {
		return damaged("enhanced packet block of %d bytes", len(body)+blockOverhead)
	}
	return p.packet(body, p.order.u32(body), rec)
}

// obsolete is the packet block that enhanced packets replaced: 16 bits of interface and 16 of drops, then the same.
func (p *pcapng) obsolete(body []byte, rec *record) error {
	if len(body) < enhancedHeader {
		return damaged("packet block of %d bytes", len(body)+blockOverhead)
	}
	return p.packet(body, uint32(p.order.u16(body)), rec)
}

func (p *pcapng) packet(body []byte, id uint32, rec *record) error {
	captured := p.order.u32(body[12:])
	rest := body[enhancedHeader:]
	if uint64(captured) > uint64(len(rest)) {
		return damaged("packet claims %d captured bytes in a block that holds %d", captured, len(rest))
	}
	rec.data = rest[:captured:captured]
	rec.wire = max(int(p.order.u32(body[16:])), len(rec.data))
	rec.iface = p.before + id
	if id >= uint32(len(p.ifaces)) {
		rec.refuse = fmt.Sprintf("packet of an interface that the capture does not describe (%d)", id)
		return nil
	}
	iface := &p.ifaces[id]
	rec.link = iface.link
	rec.time = iface.ns(uint64(p.order.u32(body[4:]))<<32 | uint64(p.order.u32(body[8:])))
	p.last = rec.time
	if padded := (int(captured) + 3) &^ 3; padded < len(rest) {
		rec.out = p.outbound(rest[padded:])
	}
	return nil
}

// simple packets belong to the first interface and carry neither time nor captured length; they take the time of
// the packet before.
func (p *pcapng) simple(body []byte, rec *record) error {
	if len(body) < 4 {
		return damaged("simple packet block of %d bytes", len(body)+blockOverhead)
	}
	wire := p.order.u32(body)
	captured := min(uint64(wire), uint64(len(body)-4))
	rec.iface, rec.wire, rec.time = p.before, int(wire), p.last
	if len(p.ifaces) == 0 {
		rec.refuse = "packet of an interface that the capture does not describe (0)"
		return nil
	}
	if snap := p.ifaces[0].snap; snap != 0 {
		captured = min(captured, uint64(snap))
	}
	rec.data = body[4 : 4+captured]
	rec.link = p.ifaces[0].link
	return nil
}

// clampTime limits a time to the range of an int64 of nanoseconds (the year 2262).
func clampTime(hi, lo uint64) int64 {
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
