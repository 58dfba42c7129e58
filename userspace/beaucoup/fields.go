package beaucoup

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

// words is the packet header vector as the program masks it: enum beaucoup_word of bpf/beaucoup/beaucoup.bpf.c.
const (
	wordSrcHigh = iota
	wordSrcLow
	wordDstHigh
	wordDstLow
	wordPorts
	wordPacket
	wordApp
	wordName
	wordCount
)

type words [wordCount]uint64

// Places within wordPorts.
const (
	shiftSport  = 48
	shiftDport  = 32
	shiftProto  = 24
	shiftFlags  = 16
	shiftFamily = 12
)

// hasApp is HAS_APP of the program: the identifier of a request or of a response is there.
const hasApp packet.Valid = 1 << 15

// validOf is what a packet has.
func validOf(p *packet.Packet) packet.Valid {
	if p.Valid&(packet.AppRequest|packet.AppResponse) != 0 {
		return p.Valid | hasApp
	}
	return p.Valid &^ hasApp
}

// ErrField is wrapped when a query asks for what the program does not know.
var ErrField = errors.New("the data plane has no such field")

// field is one name of the query language: the bits of the vector that it stands for.
type field struct {
	name  string
	word  int
	mask  uint64
	shift int
	valid packet.Valid // what a packet must have
	need  maps.Need
}

var fields = []field{
	{name: "sport", word: wordPorts, mask: 0xffff << shiftSport, shift: shiftSport, valid: packet.Ports},
	{name: "dport", word: wordPorts, mask: 0xffff << shiftDport, shift: shiftDport, valid: packet.Ports},
	{name: "proto", word: wordPorts, mask: 0xff << shiftProto, shift: shiftProto},
	{name: "tcp.flags", word: wordPorts, mask: 0xff << shiftFlags, shift: shiftFlags, valid: packet.TCP},
	{name: "vlan", word: wordPorts, mask: 0xfff, valid: packet.VLAN},
	{name: "timestamp", word: wordPacket, mask: ^uint64(0)},
	{name: "dns.id", word: wordApp, mask: ^uint64(0), valid: hasApp, need: maps.NeedDNS},
	{name: "dns.qname", word: wordName, mask: ^uint64(0), valid: packet.HasQName, need: maps.NeedQName},
}

// Tuple is a key or an attribute: some bits of the vector.
type Tuple struct {
	Text  string
	mask  words
	valid packet.Valid
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
	t := Tuple{valid: packet.IP}
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
			t.mask[f.word] |= f.mask
			t.valid |= f.valid
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
			t.ipv6 = true // of IPv4 it would leave nothing: all hosts would be one
		}
	}
	at := wordSrcHigh
	if name == "dst" {
		at = wordDstHigh
	}
	t.mask[at] |= ^uint64(0) << max(0, 64-bits)
	if bits > 64 {
		t.mask[at+1] |= ^uint64(0) << (128 - bits)
	}
	return nil
}

// wordsOf is a packet as the program sees it; number stands for what is different in every packet, seed is that of the
// hash of DNS names.
func wordsOf(p *packet.Packet, number, seed uint64) (w words) {
	w[wordSrcHigh], w[wordSrcLow] = address(p.Src)
	w[wordDstHigh], w[wordDstLow] = address(p.Dst)
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
	w[wordPorts] = uint64(p.SrcPort)<<shiftSport | uint64(p.DstPort)<<shiftDport | uint64(p.Proto)<<shiftProto |
		flags<<shiftFlags | family<<shiftFamily | vlan
	w[wordPacket] = number
	if validOf(p)&hasApp != 0 {
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

func (w *words) and(mask *words) (masked words) {
	for i := range w {
		masked[i] = w[i] & mask[i]
	}
	return masked
}

// Name writes the value of a key for people: "src=10.0.0.1 dport=80". names are DNS names by their hash.
func (t *Tuple) Name(w words, names map[uint64]string) string {
	var parts []string
	for _, part := range strings.Split(t.Text, "+") {
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

func numberText(w words, name string) string {
	for _, f := range fields {
		if f.name == name {
			return strconv.FormatUint((w[f.word]&f.mask)>>f.shift, 10)
		}
	}
	return ""
}

// fieldsOf are the names of the fields that the parser must be asked for.
func fieldsOf(need maps.Need) (names []string) {
	for _, f := range fields {
		if f.need&need != 0 {
			names = append(names, f.name)
		}
	}
	return names
}

func addressText(w words, name string) string {
	at := wordSrcHigh
	if name == "dst" {
		at = wordDstHigh
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], w[at])
	binary.BigEndian.PutUint64(b[8:], w[at+1])
	return netip.AddrFrom16(b).Unmap().String()
}
