package twin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Emit is a header that a twin makes: in front of the packet for its egress, in front of a clone, or for another pass. A test compares
// every field with what Want computes from the host's side; a header that no Emit names is an error.
type Emit struct {
	Header string // its type
	// Want computes the fields of the header of this packet, by name; nil: it has none.
	Want func(s *Seen) Fields
	// View removes fields that nothing reads, or replaces them by what the next pass computes from them; nil: compared unchanged.
	View func(want, twin Fields)
}

// Fields of a header.
type Fields map[string]uint64

// Seen is a packet on the host's side, after its programs have run.
type Seen struct {
	Values    algo.Values
	Packet    packet.Packet // as userspace decodes it
	Given     bool          // to the host; the twin alone receives what the host reads and the twin does not
	PHV       maps.PHV      // after the programs; all zeros for a packet that was not given
	Records   [][]byte      // written to the ring of Reports
	Arrived   uint64        // at the switch, ns
	Pipe      uint64        // of its ingress port
	Unclaimed bool          // forwarding has no entry for it
	// Word is the current element of an array of the host; Before is its value that Remember requested. Constant is a constant of the programs.
	Word     func(array string, i int) (uint64, error)
	Read     func(array string, i int, v any) error    // an element that is no word
	Entry    func(table string, i int) (uint64, error) // of a table that does not change
	Before   func(array string, i int) uint64
	Constant func(name string) uint64
	Err      error // first error of Want's reads
}

// At is Word with the error stored in Err.
func (s *Seen) At(array string, i int) uint64 {
	v, err := s.Word(array, i)
	s.keep(array, i, err)
	return v
}

// In is Entry with the error stored in Err.
func (s *Seen) In(table string, i int) uint64 {
	v, err := s.Entry(table, i)
	s.keep(table, i, err)
	return v
}

// Get is Read with the error stored in Err.
func (s *Seen) Get(array string, i int, v any) { s.keep(array, i, s.Read(array, i, v)) }

func (s *Seen) keep(array string, i int, err error) {
	if err != nil && s.Err == nil {
		s.Err = fmt.Errorf("read %s[%d]: %w", array, i, err)
	}
}

// Session is the mirror session of the packet's ingress pipe.
func (s *Seen) Session() uint64 { return s.Pipe + 1 }

// Flag is 1 or 0.
func Flag(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// Ordered are the fields in the order of a header; an error if one is missing, or not in the header.
func (f Fields) Ordered(h *run.Header) ([]uint64, error) {
	all := make([]uint64, len(h.Fields))
	for i, name := range h.Fields {
		v, ok := f[name]
		if !ok {
			return nil, fmt.Errorf("header %s: nothing compares field %s", h.Type, name)
		}
		all[i] = v
	}
	if len(f) != len(all) {
		return nil, fmt.Errorf("header %s has %d fields, and %d are compared", h.Type, len(all), len(f))
	}
	return all, nil
}

// rows are the polynomials of p4/include/hashing.p4.
var rows = func() (tables [4]*crc32.Table) {
	for row, polynomial := range []uint32{0x04C11DB7, 0x1EDC6F41, 0x741B8CD7, 0x814141AB} {
		tables[row] = crc32.MakeTable(bits.Reverse32(polynomial))
	}
	return tables
}()

// hashWords of a field list.
const hashWords = 11

// Hash is a row's CRC of words in network order, followed by zeros.
func Hash(row int, words ...uint32) uint32 {
	var b [4 * hashWords]byte
	for i, w := range words {
		binary.BigEndian.PutUint32(b[4*i:], w)
	}
	return crc32.Checksum(b[:], rows[row])
}

// Words of an address.
func Words(address []byte) (all []uint32) {
	for len(address) >= 4 {
		all, address = append(all, binary.BigEndian.Uint32(address)), address[4:]
	}
	return all
}

// Wanted are the fields of each of a twin's headers, in the order of Emits; nil if this packet has none.
func (t *Twin) Wanted(s *Seen) ([]Fields, error) {
	all := make([]Fields, len(t.Emits))
	for i := range t.Emits {
		all[i] = t.Emits[i].Want(s)
	}
	return all, s.Err
}

// compare one header.
func (e *Emit) compare(wanted Fields, h *run.Header) error {
	mine := Fields{}
	for i, name := range h.Fields {
		mine[name] = h.Values[i]
	}
	if wanted == nil {
		return fmt.Errorf("header %s: the twin makes one of this packet, %v; the host none", h.Type, mine)
	}
	want, err := wanted.Ordered(h)
	if err != nil {
		return err
	}
	if e.View != nil {
		e.View(wanted, mine)
	}
	for i, name := range h.Fields {
		if mine[name] != want[i] {
			return fmt.Errorf("header %s: field %s is %#x, by the host's side %#x", h.Type, name, mine[name], want[i])
		}
	}
	return nil
}

// CompareHeaders compares all headers that the twin made of a packet with the expected ones, and its clones with what should have been
// copied.
func (t *Twin) CompareHeaders(wanted []Fields, r *run.Result) error {
	for i := range wanted {
		e, n := &t.Emits[i], 0
		for j := range r.Headers {
			if r.Headers[j].Type != e.Header {
				continue
			}
			if n++; n > 1 {
				return fmt.Errorf("the twin makes two headers %s of a packet", e.Header)
			}
			if err := e.compare(wanted[i], &r.Headers[j]); err != nil {
				return err
			}
		}
		if n == 0 && wanted[i] != nil {
			return fmt.Errorf("the twin makes no header %s of this packet; by the host's side it has one", e.Header)
		}
	}
	return t.unknown(r)
}

// unknown reports unknown headers, and clones that are modified or do not end.
func (t *Twin) unknown(r *run.Result) error {
	for i := range r.Headers {
		h := &r.Headers[i]
		if !t.emits(h.Type) {
			return fmt.Errorf("the twin makes a header %s (%s), which nothing compares", h.Type, h.Kind)
		}
		if h.Kind == run.Added {
			return fmt.Errorf("header %s leaves the switch with the packet", h.Type)
		}
	}
	if r.Escaped > 0 {
		return fmt.Errorf("%d clones go on after their second pass", r.Escaped)
	}
	for _, c := range r.Copies {
		if c.Dropped || !bytes.Equal(c.Sent, c.Data) {
			return fmt.Errorf("a clone leaves for port %d as %x (dropped: %v), and was made as %x", c.Port, c.Data, c.Dropped, c.Sent)
		}
	}
	return nil
}

func (t *Twin) emits(header string) bool {
	for i := range t.Emits {
		if t.Emits[i].Header == header {
			return true
		}
	}
	return false
}
