package capture

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The magic numbers of pcap files, read as little endian.
const (
	magicMicro        = 0xa1b2c3d4
	magicNano         = 0xa1b23c4d
	magicMicroSwapped = 0xd4c3b2a1
	magicNanoSwapped  = 0x4d3cb2a1
)

const (
	pcapHeader   = 24         // bytes
	pcapRecord   = 16         // bytes in front of each packet
	pcapLinkMask = 0x03ffffff // above are bits about a frame check sequence
)

// order is a byte order; methods instead of binary.ByteOrder because they inline.
type order bool

const (
	little order = false
	big    order = true
)

func (o order) u16(b []byte) uint16 {
	if o == big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (o order) u32(b []byte) uint32 {
	if o == big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (o order) u64(b []byte) uint64 {
	if o == big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

// pcap reads the classic format: one link type and one time unit for the whole file.
type pcap struct {
	order order
	unit  int64 // ns of the fraction's unit: 1 or 1000
	link  uint32
}

func newPcap(in *input) (*pcap, error) {
	head, err := in.peek(4)
	if err != nil {
		return nil, noEOF(err)
	}
	p, err := pcapMagic(head)
	if err != nil {
		return nil, err
	}
	if head, err = in.peek(pcapHeader); err != nil {
		return nil, fmt.Errorf("%w: %w", cutOff("the file header", len(head), pcapHeader, err), ErrTruncated)
	}
	if major := p.order.u16(head[4:]); major != 2 {
		return nil, fmt.Errorf("pcap version %d, only version 2 is known: %w", major, ErrFormat)
	}
	p.link = p.order.u32(head[20:]) & pcapLinkMask
	in.advance(pcapHeader)
	return p, nil
}

func pcapMagic(head []byte) (*pcap, error) {
	switch binary.LittleEndian.Uint32(head) {
	case magicMicro:
		return &pcap{order: little, unit: 1000}, nil
	case magicNano:
		return &pcap{order: little, unit: 1}, nil
	case magicMicroSwapped:
		return &pcap{order: big, unit: 1000}, nil
	case magicNanoSwapped:
		return &pcap{order: big, unit: 1}, nil
	}
	return nil, fmt.Errorf("first bytes are % x%s: %w", head[:4], hint(head), ErrFormat)
}

// hint names the remedy for what people feed to a capture reader by mistake.
func hint(head []byte) string {
	switch binary.BigEndian.Uint32(head) {
	case 0x28b52ffd:
		return " (zstd: unpack it with zstd -d first)"
	case 0xfd377a58:
		return " (xz: unpack it with xz -d first)"
	case 0x04224d18:
		return " (lz4: unpack it with lz4 -d first)"
	case 0x504b0304:
		return " (zip: unpack it with unzip first)"
	case 0x736e6f6f:
		return " (snoop: convert it with editcap first)"
	case 0xa1b2cd34, 0x34cdb2a1:
		return " (modified pcap: convert it with editcap first)"
	}
	return ""
}

func (p *pcap) next(in *input, rec *record) error {
	head, err := in.peek(pcapRecord)
	if err == io.EOF {
		return err
	}
	if err != nil {
		return cutOff("a packet's record header", len(head), pcapRecord, err)
	}
	captured, wire := p.order.u32(head[8:]), p.order.u32(head[12:])
	if captured > maxRecord {
		return damaged("record claims %d captured bytes, more than any packet has (%d)", captured, maxRecord)
	}
	size := pcapRecord + int(captured)
	sec, frac := int64(p.order.u32(head)), int64(p.order.u32(head[4:]))
	body, err := in.peek(size)
	if err != nil {
		return cutOff("a packet's record", len(body), size, err)
	}
	in.advance(size)
	rec.time = sec*1e9 + frac*p.unit
	rec.data = body[pcapRecord:]
	rec.wire = max(int(wire), len(rec.data))
	rec.link = p.link
	return nil
}
