package builder

import (
	"encoding/binary"
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Build makes the frame of a Spec. The frame owns its bytes.
func Build(s *Spec) (packet.Frame, error) {
	w := writer{spec: s}
	if err := w.build(); err != nil {
		return packet.Frame{}, fmt.Errorf("build packet: %w", err)
	}
	return packet.Frame{
		Time: s.Time, Data: w.buf, Len: len(w.buf) + w.absent, Link: s.Link,
		Direction: s.Direction, Interface: s.Interface,
	}, nil
}

// MustBuild is Build for specs that are written down in a test.
func MustBuild(s *Spec) packet.Frame {
	f, err := Build(s)
	if err != nil {
		panic(err)
	}
	return f
}

// writer appends headers front to back. Lengths and checksums depend on what follows, so each header leaves a
// fix afterwards; they run from the inside out when everything is written.
type writer struct {
	spec   *Spec
	buf    []byte
	absent int // payload bytes on the wire that are not in buf
	fixes  []func() error
}

func (w *writer) build() error {
	s := w.spec
	if s.PayloadLen != 0 && s.PayloadLen < len(s.Payload) {
		return fmt.Errorf("payload of %d bytes, but PayloadLen %d: %w", len(s.Payload), s.PayloadLen, ErrSpec)
	}
	if !s.Whole {
		w.absent = max(s.PayloadLen-len(s.Payload), 0)
	}
	if err := w.headers(); err != nil {
		return err
	}
	w.buf = append(w.buf, s.Payload...)
	if s.Whole {
		w.zeros(s.PayloadLen - len(s.Payload))
	}
	for i := len(w.fixes) - 1; i >= 0; i-- {
		if err := w.fixes[i](); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) headers() error {
	s := w.spec
	isIP := s.IP.Src.IsValid()
	outermost := etherType(s.IP.Src.Is4())
	if s.Outer != nil {
		outermost = etherType(s.Outer.Src.Is4())
	}
	if !isIP {
		outermost = s.EtherType
	}
	if err := w.link(outermost); err != nil || !isIP {
		return err
	}
	if s.Outer != nil {
		if err := w.outer(s.Outer); err != nil {
			return err
		}
	}
	proto, err := s.proto()
	if err != nil {
		return err
	}
	if err := w.network(&s.IP, proto); err != nil {
		return err
	}
	return w.transport()
}

func etherType(v4 bool) uint16 {
	if v4 {
		return EtherIPv4
	}
	return EtherIPv6
}

// proto is the transport's number.
func (s *Spec) proto() (uint8, error) {
	n, proto := 0, s.Proto
	if s.TCP != nil {
		n, proto = n+1, ProtoTCP
	}
	if s.UDP != nil {
		n, proto = n+1, ProtoUDP
	}
	if s.Echo != nil {
		n, proto = n+1, ProtoICMPv6
		if s.IP.Src.Is4() {
			proto = ProtoICMP
		}
	}
	if n > 1 {
		return 0, fmt.Errorf("more than one transport header: %w", ErrSpec)
	}
	return proto, nil
}

func (w *writer) fix(f func() error) { w.fixes = append(w.fixes, f) }

// wireSince is the bytes on the wire from a position in buf to the packet's end.
func (w *writer) wireSince(pos int) int { return len(w.buf) + w.absent - pos }

func (w *writer) u16(v uint16) { w.buf = binary.BigEndian.AppendUint16(w.buf, v) }

func (w *writer) u32(v uint32) { w.buf = binary.BigEndian.AppendUint32(w.buf, v) }

func (w *writer) bytes(b ...byte) { w.buf = append(w.buf, b...) }

func (w *writer) zeros(n int) {
	if n > 0 {
		w.buf = append(w.buf, make([]byte, n)...)
	}
}

// padded appends b and zeros up to a multiple of unit.
func (w *writer) padded(b []byte, unit int) {
	w.buf = append(w.buf, b...)
	w.zeros((unit - len(b)%unit) % unit)
}

func (w *writer) put16(pos, v int) { binary.BigEndian.PutUint16(w.buf[pos:], uint16(v)) }
