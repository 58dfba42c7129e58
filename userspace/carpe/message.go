package carpe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Messages between hosts and coordinator. A message is a version followed by records; each record is a byte for its type, and:
//
//	up    epoch    the number of the window that the following records belong to
//	      report   flow, units of the bundle, observers that its reporting probability was for
//	      hello    group
//	      lost     reports that did not reach this message
//	down  update   group, observers that it is to be counted for
//
// Numbers are varints; a flow is its family and the fields that the key has, a group its family and as many bytes of its prefixes
// as their lengths take. A report of a 5-tuple over IPv4 is 17 to 19 bytes.
const (
	messageVersion = 1
	recordEpoch    = 1
	recordReport   = 2
	recordHello    = 3
	recordLost     = 4
	recordUpdate   = 5
)

// mostMessage is the size, in bytes, from which on the next record starts a new message: algo.MaxMessage less one record.
const mostMessage = algo.MaxMessage - 128

var errMessage = errors.New("malformed message of carpe")

// writer makes messages.
type writer struct {
	config *config
	done   [][]byte
	b      []byte
	epoch  uint64
}

// record begins a record, in a new message if the current one is full.
func (w *writer) record(kind byte) {
	if len(w.b) > mostMessage {
		w.end()
	}
	if len(w.b) == 0 {
		w.b = append(w.b, messageVersion)
		if kind != recordUpdate {
			w.b = binary.AppendUvarint(append(w.b, recordEpoch), w.epoch)
		}
	}
	w.b = append(w.b, kind)
}

func (w *writer) end() {
	if len(w.b) > 0 {
		w.done = append(w.done, w.b)
	}
	w.b = nil
}

// messages returns the written messages and starts over.
func (w *writer) messages() [][]byte {
	w.end()
	all := w.done
	w.done = nil
	return all
}

func (w *writer) report(k heavy.Key, units, observers uint32) {
	w.record(recordReport)
	w.b = w.config.appendKey(w.b, k)
	w.b = binary.AppendUvarint(w.b, uint64(units))
	w.b = binary.AppendUvarint(w.b, uint64(observers))
}

func (w *writer) hello(g Group) {
	w.record(recordHello)
	w.b = appendGroup(w.b, g)
}

func (w *writer) lost(n uint64) {
	w.record(recordLost)
	w.b = binary.AppendUvarint(w.b, n)
}

func (w *writer) update(g Group, observers uint32) {
	w.record(recordUpdate)
	w.b = appendGroup(w.b, g)
	w.b = binary.AppendUvarint(w.b, uint64(observers))
}

func (c *config) appendKey(b []byte, k heavy.Key) []byte {
	src, dst := c.spec.Addrs(k)
	p := c.spec.Packet(k)
	family := byte(6)
	if c.spec.IsV4(k) {
		family = 4
	}
	b = append(b, family)
	for _, a := range []netip.Addr{src, dst} {
		if a.IsValid() {
			b = append(b, a.AsSlice()...)
		}
	}
	if c.spec.Fields&heavy.SrcPort != 0 {
		b = binary.BigEndian.AppendUint16(b, p.SrcPort)
	}
	if c.spec.Fields&heavy.DstPort != 0 {
		b = binary.BigEndian.AppendUint16(b, p.DstPort)
	}
	if c.spec.Fields&heavy.Proto != 0 {
		b = append(b, p.Proto)
	}
	return b
}

func appendGroup(b []byte, g Group) []byte {
	family := byte(6)
	if g.is4() {
		family = 4
	}
	b = append(b, family)
	for _, p := range []netip.Prefix{g.Src, g.Dst} {
		b = append(b, p.Addr().AsSlice()[:(p.Bits()+7)/8]...)
	}
	return b
}

// reader parses a message. The first error ends it.
type reader struct {
	config *config
	b      []byte
	err    error
}

func (c *config) read(data []byte) (*reader, error) {
	if len(data) == 0 || data[0] != messageVersion {
		return nil, fmt.Errorf("%w: %d bytes of another version", errMessage, len(data))
	}
	return &reader{config: c, b: data[1:]}, nil
}

func (r *reader) more() bool { return r.err == nil && len(r.b) > 0 }

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", errMessage, what)
	}
}

// bytes are the next n, or zeros.
func (r *reader) bytes(n int) []byte {
	if len(r.b) < n {
		r.fail("truncated")
		r.b = nil
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte { return r.bytes(1)[0] }

func (r *reader) number(most uint64) uint64 {
	n, length := binary.Uvarint(r.b)
	if length <= 0 || n > most {
		r.fail("number invalid or too large")
		r.b = nil
		return 0
	}
	r.b = r.b[length:]
	return n
}

// observers reads a number of observers, at least one.
func (r *reader) observers() uint32 {
	n := uint32(r.number(1 << 16))
	if n == 0 {
		r.fail("no observers")
	}
	return n
}

func (r *reader) family() bool {
	f := r.byte()
	if f != 4 && f != 6 || r.config.spec.Family != heavy.Both && r.config.spec.Family != heavy.Family(f) {
		r.fail("address family is not counted")
	}
	return f == 4
}

func (r *reader) address(is4 bool) netip.Addr {
	n := 16
	if is4 {
		n = 4
	}
	a, _ := netip.AddrFromSlice(r.bytes(n)) // of either length
	return a
}

func (r *reader) key() heavy.Key {
	is4 := r.family()
	p := packet.Packet{Valid: packet.IP | packet.Ports, Src: netip.IPv6Unspecified(), Dst: netip.IPv6Unspecified()}
	if is4 {
		p.Src, p.Dst = netip.IPv4Unspecified(), netip.IPv4Unspecified()
	}
	f := r.config.spec.Fields
	if f&heavy.Src != 0 {
		p.Src = r.address(is4)
	}
	if f&heavy.Dst != 0 {
		p.Dst = r.address(is4)
	}
	if f&heavy.SrcPort != 0 {
		p.SrcPort = binary.BigEndian.Uint16(r.bytes(2))
	}
	if f&heavy.DstPort != 0 {
		p.DstPort = binary.BigEndian.Uint16(r.bytes(2))
	}
	if f&heavy.Proto != 0 {
		p.Proto = r.byte()
	}
	k, ok := r.config.spec.Of(&p)
	if !ok {
		r.fail("flow is not counted")
	}
	return k
}

func (r *reader) group() Group {
	is4 := r.family()
	src, dst, length := r.config.group.src6, r.config.group.dst6, 16
	if is4 {
		src, dst, length = r.config.group.src4, r.config.group.dst4, 4
	}
	read := func(bits int) netip.Prefix {
		var b [16]byte
		copy(b[:], r.bytes((bits+7)/8))
		a, _ := netip.AddrFromSlice(b[:length])
		return netip.PrefixFrom(a, bits)
	}
	g := Group{read(src), read(dst)}
	if err := r.config.group.check(g); err != nil {
		r.fail(err.Error())
	}
	return g
}
