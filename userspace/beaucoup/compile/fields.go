package compile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Indices of the packet header vector's words, as the program masks them: enum beaucoup_word of bpf/beaucoup/beaucoup.bpf.c.
const (
	wordSrcHigh = iota
	WordSrcLow
	wordDstHigh
	WordDstLow
	WordPorts
	WordPacket
	wordApp
	wordName
	WordCount
)

// Words are the vector as masks see it.
type Words [WordCount]uint64

// Places within wordPorts.
const (
	ShiftSport  = 48
	ShiftDport  = 32
	ShiftProto  = 24
	shiftFlags  = 16
	shiftFamily = 12
)

// hasApp is HAS_APP of the program: the packet has the identifier of a request or of a response.
const hasApp packet.Valid = 1 << 15

// ValidOf are the fields that a packet has.
func ValidOf(p *packet.Packet) packet.Valid {
	if p.Valid&(packet.AppRequest|packet.AppResponse) != 0 {
		return p.Valid | hasApp
	}
	return p.Valid &^ hasApp
}

// ErrField is wrapped when a query uses a field that the program does not have.
var ErrField = errors.New("the data plane has no such field")

// field is one name of the query language, with its bits of the vector.
type field struct {
	name  string
	word  int
	mask  uint64
	shift int
	valid packet.Valid // fields that a packet must have
	need  maps.Need
}

var fields = []field{
	{name: "sport", word: WordPorts, mask: 0xffff << ShiftSport, shift: ShiftSport, valid: packet.Ports},
	{name: "dport", word: WordPorts, mask: 0xffff << ShiftDport, shift: ShiftDport, valid: packet.Ports},
	{name: "proto", word: WordPorts, mask: 0xff << ShiftProto, shift: ShiftProto},
	{name: "tcp.flags", word: WordPorts, mask: 0xff << shiftFlags, shift: shiftFlags, valid: packet.TCP},
	{name: "vlan", word: WordPorts, mask: 0xfff, valid: packet.VLAN},
	{name: "timestamp", word: WordPacket, mask: ^uint64(0)},
	{name: "dns.id", word: wordApp, mask: ^uint64(0), valid: hasApp, need: maps.NeedDNS},
	{name: "dns.qname", word: wordName, mask: ^uint64(0), valid: packet.HasQName, need: maps.NeedQName},
}

// Tuple is a key or an attribute: some bits of the vector.
type Tuple struct {
	Text  string
	Mask  Words
	Valid packet.Valid
	need  maps.Need
	ipv4  bool // a prefix length that means IPv4 addresses only
	ipv6  bool // ... IPv6 addresses only
}

func fieldNames() string {
	names := []string{"src", "dst"}
	for _, f := range fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// ParseTuple reads "src/24+dport": fields joined by + or commas.
func ParseTuple(text string) (Tuple, error) {
	t := Tuple{Valid: packet.IP}
	var names []string
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '+' || r == ',' || r == ' ' }) {
		if err := t.add(part); err != nil {
			return t, err
		}
		names = append(names, part)
	}
	if len(names) == 0 {
		return t, fmt.Errorf("read %q: no field: there are %s", text, fieldNames())
	}
	t.Text = strings.Join(names, "+")
	return t, nil
}

func (t *Tuple) add(part string) error {
	name, length, hasLength := strings.Cut(part, "/")
	if name == "src" || name == "dst" {
		return t.addAddress(name, length, hasLength)
	}
	for _, f := range fields {
		if f.name == name && !hasLength {
			t.Mask[f.word] |= f.mask
			t.Valid |= f.valid
			t.need |= f.need
			return nil
		}
	}
	return fmt.Errorf("read field %q: %w: there are %s", part, ErrField, fieldNames())
}

// addAddress adds an address or its prefix. Lengths to 32 mean IPv4, longer ones IPv6: an address is 128 bits of vector, IPv4
// as ::ffff:a.b.c.d, and a mask has one length for both.
func (t *Tuple) addAddress(name, length string, hasLength bool) error {
	bits := 128
	if hasLength {
		n, err := strconv.Atoi(length)
		if err != nil || n < 1 || n > 128 {
			return fmt.Errorf("read %s/%s: a prefix has 1 to 32 bits (IPv4 only) or 33 to 128 (IPv6)", name, length)
		}
		if bits = n; n <= 32 {
			bits, t.ipv4 = n+96, true
		} else {
			t.ipv6 = true // for IPv4 the mask would be empty: all hosts would be one
		}
	}
	at := wordSrcHigh
	if name == "dst" {
		at = wordDstHigh
	}
	t.Mask[at] |= ^uint64(0) << max(0, 64-bits)
	if bits > 64 {
		t.Mask[at+1] |= ^uint64(0) << (128 - bits)
	}
	return nil
}

// WordsOf are a packet's words as in the program; number is a value that differs in every packet, seed that of the hash of DNS
// names.
func WordsOf(p *packet.Packet, number, seed uint64) (w Words) {
	w[wordSrcHigh], w[WordSrcLow] = address(p.Src)
	w[wordDstHigh], w[WordDstLow] = address(p.Dst)
	family, flags, vlan := uint64(6), uint64(0), uint64(0)
	if p.Src.Is4() {
		family = 4
	}
	if p.Has(packet.TCP) {
		flags = uint64(p.TCPFlags)
	}
	if p.Has(packet.VLAN) {
		vlan = uint64(p.VLAN)
	}
	w[WordPorts] = uint64(p.SrcPort)<<ShiftSport | uint64(p.DstPort)<<ShiftDport | uint64(p.Proto)<<ShiftProto |
		flags<<shiftFlags | family<<shiftFamily | vlan
	w[WordPacket] = number
	if ValidOf(p)&hasApp != 0 {
		w[wordApp] = p.AppID
	}
	if p.Has(packet.HasQName) {
		w[wordName] = packet.HashName(seed, p.QName)
	}
	return w
}

func address(a netip.Addr) (high, low uint64) {
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// And applies a mask.
func (w *Words) And(mask *Words) (masked Words) {
	for i := range w {
		masked[i] = w[i] & mask[i]
	}
	return masked
}

// Name writes the value of a key for people: "src=10.0.0.1 dport=80". names are DNS names by their hash.
func (t *Tuple) Name(w Words, names map[uint64]string) string {
	var parts []string
	for part := range strings.SplitSeq(t.Text, "+") {
		name, length, hasLength := strings.Cut(part, "/")
		text := ""
		switch {
		case name == "src" || name == "dst":
			if text = addressText(w, name); hasLength {
				text += "/" + length
			}
		case name == "dns.qname":
			text = nameText(w[wordName], names)
		default:
			text = numberText(w, name)
		}
		parts = append(parts, name+"="+text)
	}
	return strings.Join(parts, " ")
}

func nameText(hash uint64, names map[uint64]string) string {
	if name, known := names[hash]; known {
		return name
	}
	return fmt.Sprintf("%016x", hash)
}

func numberText(w Words, name string) string {
	for _, f := range fields {
		if f.name == name {
			return strconv.FormatUint((w[f.word]&f.mask)>>f.shift, 10)
		}
	}
	return ""
}

// FieldsOf are the names of the fields that the parser must provide.
func FieldsOf(need maps.Need) (names []string) {
	for _, f := range fields {
		if f.need&need != 0 {
			names = append(names, f.name)
		}
	}
	return names
}

func addressText(w Words, name string) string {
	at := wordSrcHigh
	if name == "dst" {
		at = wordDstHigh
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], w[at])
	binary.BigEndian.PutUint64(b[8:], w[at+1])
	return netip.AddrFrom16(b).Unmap().String()
}
