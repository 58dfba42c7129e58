package pisa

// set is a set of arrays: bit n is the array with array.bit == 1<<n.
type set = uint64

// Bits of a set that are no arrays.
const (
	packet    set = 1 << 63 // what depends on the packet or the clock
	chance    set = 1 << 62 // ... on the kernel's random numbers
	stale     set = 1 << 61 // ... on memory that this packet has not written
	maxArrays     = 61
)

// taint says which arrays' elements a number depends on, and of which of them it is (also) a product.
type taint struct{ from, product set }

var fromPacket = taint{from: packet}

func (t taint) with(o taint) taint { return taint{t.from | o.from, t.product | o.product} }

// form says what a value can be used for.
type form uint8

const (
	formNone    form = iota // not initialised, or forgotten because nothing reads it
	formNumber              // a number; also the context and pointers into packets and the kernel
	formStack               // into the stack of frame obj
	formMap                 // map obj itself
	formInner               // a map inside of map obj
	formElement             // an element of register or tally obj
	formMemory              // a value of any other map obj
	formRecord              // a record of ring obj
	formRound               // the number of an iterator's round
	formCode                // function at instruction obj
	formLost                // a pointer once; the proof does not know to what any more
)

// source is the memory, not of the program's own, that a number points to.
type source uint8

const (
	nothing   source = iota // it is a number, or points to what programs must not look at
	inPacket                // bytes of the packet
	inContext               // of the context
	inConfig                // a key that a callback is shown
)

// value is what a register or a word of memory holds.
type value struct {
	form   form
	obj    int32
	base   source // formNumber: what it points to
	lookup uint8  // formElement: which lookup of this array on this path
	null   uint32 // not 0: may be NULL; equal in copies of one pointer
	n      *node  // the number, or the pointer's offset in bytes
	t      taint
	why    set // of a pointer: what decides that it is here, besides its index
	sum    sum
}

// sum says that a number is a word of a counter array plus something that is not.
type sum struct {
	obj int32 // number of the map + 1; 0: no sum
	off *node
}

func (v value) isNumber() bool  { return v.form == formNumber && v.n != nil }
func (v value) isPointer() bool { return v.form > formNumber }

// equals says whether two values of one path are the same, whatever they were calculated from.
func (v value) equals(o value) bool {
	return v.form == o.form && v.obj == o.obj && v.base == o.base && v.lookup == o.lookup && v.null == o.null && v.n == o.n && v.sum == o.sum
}

// under is the value as it is in places that only some outcomes of earlier branches reach.
func (v value) under(control taint) value {
	v.t = v.t.with(control)
	if v.isPointer() {
		v.why |= control.from
	}
	return v
}

func number(n *node, t taint) value { return value{form: formNumber, n: n, t: t} }
