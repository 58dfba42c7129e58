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
// every field of every one with what Want makes of the host's side; a header that no Emit names fails it.
type Emit struct {
	Header string // its type
	// Want is what the fields hold, by name, in the header that this packet gets; nil: it gets none.
	Want func(s *Seen) Fields
	// View takes out of the twin's fields what nobody reads, or makes of them what the next pass makes; nil: they are compared as they are.
	View func(want, twin Fields)
}

// Fields of a header.
type Fields map[string]uint64

// Seen is one packet as the host knows it, after all that its programs did.
type Seen struct {
	Values    algo.Values
	Packet    packet.Packet // as userspace decodes it
	Given     bool          // to the host: the twin alone gets what the host reads and the twin does not
	PHV       maps.PHV      // as the programs left it; of a packet that was not given all zeros
	Records   [][]byte      // that went into the ring of Reports
	Arrived   uint64        // at the switch, ns
	Pipe      uint64        // that it came in by
	Unclaimed bool          // forwarding has no entry for it
	// Word is an element of an array of the host, now; Before is the one that Remember asked for. Constant is a constant of the programs.
	Word     func(array string, i int) (uint64, error)
	Read     func(array string, i int, v any) error    // an element that is no word
	Entry    func(table string, i int) (uint64, error) // of a table that stays as it is
	Before   func(array string, i int) uint64
	Constant func(name string) uint64
	Err      error // the first error of what Want asked
}

// At is Word; an error is kept.
func (s *Seen) At(array string, i int) uint64 {
	v, err := s.Word(array, i)
	s.keep(array, i, err)
	return v
}

// In is Entry; an error is kept.
func (s *Seen) In(table string, i int) uint64 {
	v, err := s.Entry(table, i)
	s.keep(table, i, err)
	return v
}

// Get is Read; an error is kept.
func (s *Seen) Get(array string, i int, v any) { s.keep(array, i, s.Read(array, i, v)) }

func (s *Seen) keep(array string, i int, err error) {
	if err != nil && s.Err == nil {
		s.Err = fmt.Errorf("read %s[%d]: %w", array, i, err)
	}
}

// Session is the mirror session of the pipe that the packet came in by.
func (s *Seen) Session() uint64 { return s.Pipe + 1 }

// Flag is 1 or 0.
func Flag(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// Ordered are the fields in the order of a header; an error when one is missing, or not of the header.
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

// Hash is a row's CRC of words in network order, with zeros after them.
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

// Wanted are the fields of each of a twin's headers, in the order of Emits, nil where this packet gets none.
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

// CompareHeaders compares all headers that the twin made of a packet with those that it had to make, and its clones with what was to be
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

// unknown headers, and clones that leave other than they were sent or do not end.
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
