package compile

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// switchRows are the CRCs of p4/include/hashing.p4.
var switchRows = func() (rows [4]*crc32.Table) {
	for n, polynomial := range []uint32{0x04C11DB7, 0x1EDC6F41, 0x741B8CD7, 0x814141AB} {
		rows[n] = crc32.MakeTable(bits.Reverse32(polynomial))
	}
	return rows
}()

// SwitchWords are a packet's words as a switch hashes them, where time and identification form the attribute that differs in
// every packet.
func SwitchWords(p *packet.Packet, seed uint64) Words {
	number := uint64(p.Time) << 16
	if p.Src.Is4() {
		number |= uint64(p.IPID)
	}
	return WordsOf(p, number, seed)
}

// SwitchPlace of a query's key: crc_key of bpf/beaucoup/beaucoup.bpf.c.
func SwitchPlace(key *Words, four bool, query int) (slot, check uint32) {
	var b []byte
	for n, w := range key[:WordDstLow+1] {
		switch {
		case !four:
			b = binary.BigEndian.AppendUint64(b, w)
		case n%2 == 0: // an IPv4 address is preceded by zeros
			b = binary.BigEndian.AppendUint64(b, 0)
		default:
			b = binary.BigEndian.AppendUint64(b, w&(1<<32-1))
		}
	}
	ports := key[WordPorts]
	b = binary.BigEndian.AppendUint32(b, uint32(ports>>ShiftDport))
	b = append(b, byte(ports>>ShiftProto), byte(query), 0, 0)
	return crc32.Checksum(b, switchRows[1]), crc32.Checksum(b, switchRows[3])
}

// SwitchDraws are the queries of which a packet draws a coupon on a switch, by its fields.
func (p *Program) SwitchDraws(w *Words, valid packet.Valid, four bool) (queries map[int]bool) {
	queries = map[int]bool{}
	coupons := p.coupons()
	for i := range p.Attributes {
		a := &p.Attributes[i]
		if valid&a.valid != a.valid || w[WordPorts]&a.filter.Mask != a.filter.Value {
			continue
		}
		masked := w.And(&a.Mask)
		crc := crc32.Checksum(attributeBytes(&masked, four), switchRows[i%len(switchRows)])
		step := int(bits.RotateLeft32(crc, 16) >> (32 - a.Grain))
		if step < a.limit && coupons[a.base+step] != 0 {
			queries[int(coupons[a.base+step]>>8&(MaxQueries-1))] = true
		}
	}
	return queries
}

// attributeBytes are the bytes that crc_attribute hashes: an address of each version, of which one is zeros.
func attributeBytes(w *Words, four bool) (b []byte) {
	for n := 0; n <= wordDstHigh; n += 2 {
		if four {
			b = append(binary.BigEndian.AppendUint32(b, uint32(w[n+1])), make([]byte, 16)...)
		} else {
			b = binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 0), w[n])
			b = binary.BigEndian.AppendUint64(b, w[n+1])
		}
	}
	ports := w[WordPorts]
	b = binary.BigEndian.AppendUint32(b, uint32(ports>>ShiftDport))
	proto := [2]byte{0, byte(ports >> ShiftProto)}
	if four {
		proto[0], proto[1] = proto[1], 0
	}
	b = append(b, proto[0], proto[1], byte(ports>>shiftFlags), 0)
	return binary.BigEndian.AppendUint64(b, w[WordPacket])
}
