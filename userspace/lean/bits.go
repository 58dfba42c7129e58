package lean

import (
	"math/bits"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
)

// Keys from bits: bits.h.
const (
	bitsBucket = sketch.Bucket
	bitsUsed   = sketch.KeyBits
	bitsCheck  = sketch.CheckBit
)

// nameless decodes the heaviest flow of each bucket from a statistic's sub-buckets; the data plane reports no keys in this mode.
func (i *instance) nameless(bank int) (candidates, error) {
	cells, err := i.set.ReadReset("lean_bits", bank)
	if err != nil {
		return nil, err
	}
	found := candidates{}
	h := sketch.Hashes{Keys: loader.HashKeys(i.seed), Pair: i.pair, CRC: i.head.CRC}
	for b := 0; b+bitsBucket <= len(cells); b += bitsBucket {
		addresses, rest, ok := h.BucketKey(cells[b : b+bitsUsed])
		if !ok {
			continue
		}
		at := h.Place(addresses, rest)
		if int(at.Rest>>16&0xffff)&(len(cells)/bitsBucket-1) == b/bitsBucket { // else it is not of this bucket
			found[i.keyOfBits(addresses, rest)] = candidate{at: at}
		}
	}
	return found, nil
}

// keyOfBits converts decoded bits to the key that reports use: heavy.Key of IPv4.
func (i *instance) keyOfBits(addresses, rest uint64) heavy.Key {
	e := event{Family: 4, Sport: uint16(rest >> 48), Dport: uint16(rest >> 32), Proto: uint8(rest >> 24)}
	e.Src = [4]uint32{2: mapped, 3: bits.ReverseBytes32(uint32(addresses >> 32))}
	e.Dst = [4]uint32{2: mapped, 3: bits.ReverseBytes32(uint32(addresses))}
	key, _ := i.keyOf(&e)
	return key
}

// mapped is the third word of an IPv4 address in the vector, ::ffff:a.b.c.d, in network order.
var mapped = bits.ReverseBytes32(0xffff)

// bitsNotes list the limits of lean.keys=bits.
func (c *config) bitsNotes(n counts) []string {
	notes := []string{"lean.keys=bits names one flow a bucket at most, of IPv4, with some thousand events: more buckets with more lean.memory"}
	if nameless := n.at(bpf.LeanLeanCounterLEAN_NAMELESS); nameless > 0 {
		notes = append(notes, "there are events of IPv6 flows, which have no bits: they are in the sketch, and unnamed")
	}
	return notes
}
