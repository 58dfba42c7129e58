package builder

import (
	"encoding/binary"
	"fmt"
	"math"
)

const defaultTTL = 64

func (w *writer) network(ip *IP, proto uint8) error {
	if ip.Src.Is4() != ip.Dst.Is4() || !ip.Dst.IsValid() {
		return fmt.Errorf("addresses %v and %v of different families: %w", ip.Src, ip.Dst, ErrSpec)
	}
	if ip.Offset%8 != 0 {
		return fmt.Errorf("fragment offset %d is no multiple of 8: %w", ip.Offset, ErrSpec)
	}
	if ip.Src.Is4() {
		return w.ipv4(ip, proto)
	}
	w.ipv6(ip, proto)
	return nil
}

func (w *writer) ipv4(ip *IP, proto uint8) error {
	if len(ip.Options) > 40 {
		return fmt.Errorf("%d bytes of IPv4 options, 40 is the most: %w", len(ip.Options), ErrSpec)
	}
	pos, header := len(w.buf), 20+(len(ip.Options)+3)&^3
	w.bytes(0x40|byte(header/4), ip.TOS)
	w.u16(0)
	w.u16(ip.ID)
	w.u16(ipv4Fragment(ip))
	w.bytes(ttl(ip), firstProto(ip.Extensions, proto), 0, 0)
	w.bytes(ip.Src.AsSlice()...)
	w.bytes(ip.Dst.AsSlice()...)
	w.padded(ip.Options, 4)
	w.extensions(ip.Extensions, proto)
	w.fix(func() error {
		if total := w.wireSince(pos); total <= math.MaxUint16 && !ip.ZeroLength {
			w.put16(pos+2, total)
		}
		if w.spec.Checksums {
			w.put16(pos+10, int(checksum(w.buf[pos:pos+header], 0)))
		}
		return nil
	})
	return nil
}

func ipv4Fragment(ip *IP) uint16 {
	field := uint16(ip.Offset / 8)
	if ip.MoreFragments {
		field |= 0x2000
	}
	if ip.DontFragment {
		field |= 0x4000
	}
	return field
}

func ttl(ip *IP) uint8 {
	if ip.TTL == 0 {
		return defaultTTL
	}
	return ip.TTL
}

// firstProto is the protocol number that the network header names.
func firstProto(exts []Extension, proto uint8) uint8 {
	if len(exts) > 0 {
		return exts[0].Proto
	}
	return proto
}

// extensions writes the chain; each header names the next one.
func (w *writer) extensions(exts []Extension, proto uint8) {
	for i, ext := range exts {
		next := firstProto(exts[i+1:], proto)
		switch ext.Proto {
		case ProtoAH:
			size := (max(len(ext.Body)+2, 12) + 3) &^ 3
			w.bytes(next, byte(size/4-2))
			w.bytes(ext.Body...)
			w.zeros(size - 2 - len(ext.Body))
		default: // a fragment header's length field is reserved, and 0 by this rule too
			size := (len(ext.Body) + 2 + 7) &^ 7
			w.bytes(next, byte(size/8-1))
			w.bytes(ext.Body...)
			w.zeros(size - 2 - len(ext.Body))
		}
	}
}

func (w *writer) ipv6(ip *IP, proto uint8) {
	exts := ip.Extensions[:len(ip.Extensions):len(ip.Extensions)]
	if ip.Offset != 0 || ip.MoreFragments {
		exts = append(exts, fragmentHeader(ip))
	}
	jumbo := w.jumbo(exts)
	if jumbo {
		exts = append([]Extension{{ProtoHopByHop, []byte{0xc2, 4, 0, 0, 0, 0}}}, exts...)
	}
	pos := len(w.buf)
	w.bytes(0x60|ip.TOS>>4, ip.TOS<<4, 0, 0)
	w.u16(0)
	w.bytes(firstProto(exts, proto), ttl(ip))
	w.bytes(ip.Src.AsSlice()...)
	w.bytes(ip.Dst.AsSlice()...)
	w.extensions(exts, proto)
	w.fix(func() error {
		payload := w.wireSince(pos + 40)
		switch {
		case jumbo:
			binary.BigEndian.PutUint32(w.buf[pos+44:], uint32(payload))
		case payload <= math.MaxUint16 && !ip.ZeroLength:
			w.put16(pos+4, payload)
		}
		return nil
	})
}

// jumbo reports whether the length field is too small; the payload alone decides, headers are below a kilobyte.
func (w *writer) jumbo(exts []Extension) bool {
	size := max(w.spec.PayloadLen, len(w.spec.Payload)) + 60
	for _, ext := range exts {
		size += len(ext.Body) + 8
	}
	return size > math.MaxUint16
}

func fragmentHeader(ip *IP) Extension {
	body := make([]byte, 6)
	place := uint16(ip.Offset)
	if ip.MoreFragments {
		place |= 1
	}
	binary.BigEndian.PutUint16(body, place)
	binary.BigEndian.PutUint32(body[2:], uint32(ip.ID))
	return Extension{ProtoFragment, body}
}
