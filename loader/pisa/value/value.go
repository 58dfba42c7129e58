// Package value is what registers and memory hold: numbers, pointers, and what they were calculated from.
package value

import (
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
)

// Taint is the set of arrays whose elements a number depends on, and of those of which it is (also) a product. Named are the sources of a trace,
// by its numbers; empty in a proof.
type Taint struct{ From, Product, Named declared.Set }

// FromPacket is the taint of what depends on the packet alone.
var FromPacket = Taint{From: declared.Packet}

// With is what depends on both.
func (t Taint) With(o Taint) Taint {
	return Taint{t.From.Or(o.From), t.Product.Or(o.Product), t.Named.Or(o.Named)}
}

// Form is the kind of a value, which decides its uses.
type Form uint8

const (
	FormNone    Form = iota // not initialised, or forgotten because nothing reads it
	FormNumber              // a number; also the context and pointers into packets and the kernel
	FormStack               // into the stack of frame obj
	FormMap                 // map obj itself
	FormInner               // a map inside of map obj
	FormElement             // an element of register or tally obj
	FormMemory              // a value of any other map obj
	FormRecord              // a record of ring obj
	FormRound               // the number of an iterator's round
	FormCode                // function at instruction obj
	FormLost                // a pointer once; the proof does not know to what any more
)

// Source is the memory, not of the program's own, that a number points to.
type Source uint8

const (
	Nothing   Source = iota // it is a number, or points to what programs must not look at
	InPacket                // bytes of the packet
	InContext               // of the context
	InConfig                // a key that a callback is shown

	// Memory of the kernel that a trace point shows, and offsets of fields in it: package allow lists which field leads where.
	InBuffer       // a socket buffer
	InDevice       // its interface
	InNet          // ... and the network namespace of that
	InSocket       // the socket that a dropped packet was for
	InBlock        // the buffer's control block
	InHead         // the buffer's memory, or the memory after a number of its bytes
	InBytes        // its packet's bytes
	InWords        // the words of the control block that carry
	InLength       // its length there
	InSegmentSize  // of an aggregate
	InSegmentCount // likewise
	OffsetBlock
	OffsetWords
	OffsetLength
	OffsetSegmentSize
	OffsetSegmentCount
)

// Kernel reports whether it is memory of the kernel that a trace point shows, or an offset in it.
func (s Source) Kernel() bool { return s >= InBuffer }

// Value is what a register or a word of memory holds.
type Value struct {
	Form   Form
	Obj    int32
	Base   Source     // formNumber: what it points to
	Lookup uint8      // formElement: which lookup of this array on this path
	Null   uint32     // not 0: may be NULL; equal in copies of one pointer
	N      *expr.Node // the number, or the pointer's offset in bytes
	T      Taint
	Why    declared.Set // of a pointer: everything except its index that decides that the pointer is here
	Sum    Sum
}

// Sum marks a number that is a word of a counter array plus another number.
type Sum struct {
	Obj int32 // number of the map + 1; 0: no sum
	Off *expr.Node
}

// IsNumber and IsPointer distinguish values; a lost value counts as a pointer.
func (v Value) IsNumber() bool  { return v.Form == FormNumber && v.N != nil }
func (v Value) IsPointer() bool { return v.Form > FormNumber }

// Equals reports whether two values of one path are the same, whatever they were calculated from.
func (v Value) Equals(o Value) bool {
	return v.Form == o.Form && v.Obj == o.Obj && v.Base == o.Base && v.Lookup == o.Lookup && v.Null == o.Null && v.N == o.N && v.Sum == o.Sum
}

// Under is the value as it is in places that only some outcomes of earlier branches reach.
func (v Value) Under(control Taint) Value {
	v.T = v.T.With(control)
	if v.IsPointer() {
		v.Why = v.Why.Or(control.From)
	}
	return v
}

// Number is a value that can be calculated with.
func Number(n *expr.Node, t Taint) Value { return Value{Form: FormNumber, N: n, T: t} }
