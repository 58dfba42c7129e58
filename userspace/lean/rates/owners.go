package rates

import "github.com/xdpmon/xdpmon/userspace/heavy"

// Slot is a word's place in a table.
type Slot struct {
	Way   uint8
	Index uint32
}

type owner struct {
	key       heavy.Key
	signature uint64
}

// Owners are the flows of a table in one bank, and what was counted of them and of those that had a word before. The zero value has
// seen nothing yet.
type Owners struct {
	owners map[Slot]owner
	Flows  map[heavy.Key]Flow
	Lost   uint64 // words of flows that nobody named, because their report was dropped
}

// Take is a flow that takes a word: its place, and what word and sums held before.
func (o *Owners) Take(key heavy.Key, rows uint64, way uint8, entries int, word, sums, squares uint64) {
	at := Slot{way, uint32(rows>>(16*way)) & 0xffff & uint32(entries-1)}
	o.End(at, word, sums, squares)
	if o.owners == nil {
		o.owners = map[Slot]owner{}
	}
	o.owners[at] = owner{key, max(rows>>signBit, 1)}
}

// End adds what a word held to the flow that had it.
func (o *Owners) End(at Slot, word, sums, squares uint64) {
	if word == 0 {
		return
	}
	had, known := o.owners[at]
	if !known || had.signature != word>>signBit {
		o.Lost++
		return
	}
	if o.Flows == nil {
		o.Flows = map[heavy.Key]Flow{}
	}
	f := o.Flows[had.key]
	f.Add(Held(word, sums, squares))
	o.Flows[had.key] = f
}
