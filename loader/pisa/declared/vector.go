package declared

import (
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// vector is the part of the packet header vector's layout that rule 5 needs.
type vector struct {
	Array      int32 // -1: the collection has none
	Pass, Next int
	Bank       int
	Carry      Word
	Writable   []Word // words that the entry program sets for each packet, so that no state survives in them
	Coin       Word
	Now        Word
}

// Word is a range of bytes.
type Word struct{ Off, Size int }

// Covers reports whether [off, off+size) lies in the word.
func (w Word) Covers(off, size int) bool {
	return w.Size > 0 && off >= w.Off && off+size <= w.Off+w.Size
}

// Overlaps reports whether they have a byte in common.
func (w Word) Overlaps(off, size int) bool { return off < w.Off+w.Size && w.Off < off+size }

// vectorSizes are the words of the vector that the rules know, and their bytes: in another layout they would not be those that
// the entry program sets.
var vectorSizes = map[string]int{
	"pass": 1, "next": 1, "bank": 1, "carry": 16, "coin": 4, "now": 8, "ep_src": 8, "ep_dst": 8, "verdict": 1,
	"steer": 4, "steering": 1, "slice": 2,
}

// read finds the words of the vector in its BTF; it returns their errors.
func (v *vector) read(array int32, t btf.Type) (wrong string) {
	s, ok := btf.As[*btf.Struct](t)
	if !ok {
		return "the vector has no type information"
	}
	v.Array = array
	for _, member := range s.Members {
		size, known := vectorSizes[member.Name]
		if !known {
			continue
		}
		if got, err := btf.Sizeof(member.Type); err != nil || got != size {
			wrong = fmt.Sprintf("the vector's %s has %d bytes, not the %d of phv.h", member.Name, got, size)
			size = min(size, got)
		}
		v.add(member.Name, Word{int(member.Offset.Bytes()), size})
	}
	return wrong
}

func (v *vector) add(name string, w Word) {
	switch name {
	case "pass":
		v.Pass = w.Off
	case "next":
		v.Next = w.Off
	case "bank":
		v.Bank = w.Off
		return
	case "coin":
		v.Coin = w
		return
	case "carry":
		v.Carry = w
	case "now":
		v.Now = w
	}
	v.Writable = append(v.Writable, w)
}

// CarryMask has a bit for each byte of carry that lies in [off, off+size).
func (v *vector) CarryMask(off, size int) (mask uint32) {
	for i := range v.Carry.Size {
		if at := v.Carry.Off + i; at >= off && at < off+size {
			mask |= 1 << i
		}
	}
	return mask
}

// MayWrite reports whether the entry program sets all of [off, off+size) again for the next packet.
func (v *vector) MayWrite(off, size int) bool {
	for _, w := range v.Writable {
		if w.Covers(off, size) {
			return true
		}
	}
	return false
}

// budgetWords is the layout of recirc.h's struct, with the allowed access to each word.
type budgetWords struct {
	Left   Word
	Counts []Word // added to
	Known  bool
}

// readBudget finds the words of the budget in its BTF.
func readBudget(t btf.Type) (b budgetWords) {
	s, ok := btf.As[*btf.Struct](t)
	if !ok {
		return b
	}
	for _, member := range s.Members {
		w := Word{int(member.Offset.Bytes()), 8}
		switch member.Name {
		case "left":
			b.Left, b.Known = w, true
		case "granted", "refused":
			b.Counts = append(b.Counts, w)
		}
	}
	return b
}
