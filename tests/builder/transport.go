package builder

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

func (w *writer) transport() error {
	s := w.spec
	switch {
	case s.TCP != nil:
		return w.tcp(s.TCP)
	case s.UDP != nil:
		w.udp(s.UDP.SrcPort, s.UDP.DstPort, s.Checksums)
	case s.Echo != nil:
		w.echo(s.Echo)
	}
	return nil
}

func (w *writer) tcp(t *TCP) error {
	if len(t.Options) > 40 {
		return fmt.Errorf("%d bytes of TCP options, 40 is the most: %w", len(t.Options), ErrSpec)
	}
	pos, header := len(w.buf), 20+(len(t.Options)+3)&^3
	w.u16(t.SrcPort)
	w.u16(t.DstPort)
	w.u32(t.Seq)
	w.u32(t.Ack)
	w.bytes(byte(header/4)<<4, t.Flags)
	w.u16(t.Window)
	w.u32(0)
	w.padded(t.Options, 4)
	w.sum(pos, 16, ProtoTCP, w.spec.Checksums)
	return nil
}

// udp writes a header whose length covers the rest of the packet; above 65,535 bytes it is 0 as in a jumbogram.
func (w *writer) udp(src, dst uint16, sum bool) {
	pos := len(w.buf)
	w.u16(src)
	w.u16(dst)
	w.u32(0)
	w.sum(pos, 6, ProtoUDP, sum)
	w.fix(func() error {
		if size := w.wireSince(pos); size <= 0xffff {
			w.put16(pos+4, size)
		}
		return nil
	})
}

func (w *writer) echo(e *Echo) {
	kind, proto := byte(8), uint8(ProtoICMP)
	if e.Reply {
		kind = 0
	}
	if !w.spec.IP.Src.Is4() {
		kind, proto = 128, ProtoICMPv6
		if e.Reply {
			kind = 129
		}
	}
	pos := len(w.buf)
	w.bytes(kind, 0)
	w.u16(0)
	w.u16(e.ID)
	w.u16(e.Seq)
	w.sum(pos, 2, proto, w.spec.Checksums)
}

// sum arranges for the transport's checksum at pos+field, once everything after it is written. It belongs to the inner
// addresses; tunnels leave theirs 0.
func (w *writer) sum(pos, field int, proto uint8, wanted bool) {
	if !wanted {
		return
	}
	w.fix(func() error {
		w.put16(pos+field, 0)
		start := pseudo(w.spec.IP.Src, w.spec.IP.Dst, proto, w.wireSince(pos))
		value := checksum(w.buf[pos:], start)
		if value == 0 && proto == ProtoUDP {
			value = 0xffff // 0 means "none"
		}
		w.put16(pos+field, int(value))
		return nil
	})
}

// pseudo is the partial sum of the pseudo header; ICMP over IPv4 has none.
func pseudo(src, dst netip.Addr, proto uint8, size int) uint32 {
	if proto == ProtoICMP {
		return 0
	}
	return partial(src.AsSlice(), partial(dst.AsSlice(), uint32(proto)+uint32(size>>16)+uint32(size&0xffff)))
}

// partial adds 16-bit words without folding; 2^16 words fit.
func partial(b []byte, sum uint32) uint32 {
	for len(b) >= 2 {
		sum += uint32(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

// checksum is the Internet checksum of b, added to a partial sum.
func checksum(b []byte, sum uint32) uint16 {
	for len(b) > 1<<15 { // fold before the sum overflows
		sum = partial(b[:1<<15], sum)
		sum = sum>>16 + sum&0xffff
		b = b[1<<15:]
	}
	sum = partial(b, sum)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
