package packet

import (
	"encoding/binary"
	"strings"
)

// The bounds of a name in a DNS message (RFC 1035, section 3.1).
const (
	longestName  = 255 // bytes, with lengths and the empty label
	longestLabel = 63
)

// name reads the name of the first question, in lower case. One that does not end within the captured message, or is
// compressed, is none.
func (p *Packet) name(msg []byte) {
	msg = msg[:min(len(msg), int(p.Payload))]
	if len(msg) <= dnsHeader || binary.BigEndian.Uint16(msg[4:]) == 0 {
		return
	}
	name := msg[dnsHeader:min(len(msg), dnsHeader+longestName)]
	for at := 0; at < len(name) && name[at] <= longestLabel; at += 1 + int(name[at]) {
		if name[at] == 0 {
			p.QName = lower(name[:at+1])
			p.Valid |= HasQName
			return
		}
	}
}

// lower is the name with small letters, of ASCII only (RFC 4343).
func lower(name []byte) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// HashName is the field qname of the vector for a QName: bpf/include/qname.h.
func HashName(seed uint64, name string) uint64 {
	h := seed
	for len(name) > 0 {
		var word [8]byte
		n := copy(word[:], name)
		w := binary.LittleEndian.Uint64(word[:])
		h = mix(h^w) + w
		name = name[n:]
	}
	return h
}

// mix is hash_mix of bpf/include/hash.h.
func mix(x uint64) uint64 {
	for range 2 {
		x ^= x >> 32
		x *= 0xd6e8feb86659fd93
	}
	return x ^ x>>32
}

// WireName writes "www.Example.org" in wire format, in lower case; "" if it cannot be a name.
func WireName(text string) string {
	var b []byte
	for label := range strings.SplitSeq(strings.TrimSuffix(text, "."), ".") {
		if len(label) > longestLabel || (label == "" && text != "." && text != "") {
			return ""
		}
		if label != "" {
			b = append(append(b, byte(len(label))), label...)
		}
	}
	if b = append(b, 0); len(b) > longestName {
		return ""
	}
	return lower(b)
}
