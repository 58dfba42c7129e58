package loader

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf"
)

// HashPolynomials are the rows of CRC mode, most significant bit first, as bpf/include/hash.h and
// p4/include/hashing.p4 use them: CRC-32 (IEEE 802.3), CRC-32C, CRC-32K, CRC-32Q.
var HashPolynomials = [4]uint32{0x04C11DB7, 0x1EDC6F41, 0x741B8CD7, 0x814141AB}

// crcTable is the table of a reflected CRC-32 for slicing by four.
func crcTable(polynomial uint32) (table [4][256]uint32) {
	reflected := bits.Reverse32(polynomial)
	for b := range 256 {
		crc := uint32(b)
		for range 8 {
			crc = crc>>1 ^ reflected&-(crc&1)
		}
		table[0][b] = crc
	}
	for s := 1; s < 4; s++ {
		for b := range 256 {
			before := table[s-1][b]
			table[s][b] = before>>8 ^ table[0][before&255]
		}
	}
	return table
}

func (i *Instance) fillHashTables() error {
	if !i.opts.CRC {
		return nil
	}
	var raw []byte
	for _, polynomial := range HashPolynomials {
		for _, slice := range crcTable(polynomial) {
			for _, word := range slice {
				raw = binary.NativeEndian.AppendUint32(raw, word)
			}
		}
	}
	if err := i.shared["hash_crc_tables"].Update(uint32(0), raw, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("write hash tables: %w", err)
	}
	return nil
}
