package declared

// Set is a set of arrays: the array with Array.Bit == bit(n) is number n.
type Set struct{ low, high uint64 }

// Members of a set that are no arrays.
var (
	Packet = bit(maxArrays + 2) // values that depend on the packet or the clock
	Chance = bit(maxArrays + 1) // ... on the kernel's random numbers
	Stale  = bit(maxArrays)     // ... on memory that this packet has not written
)

const maxArrays = 125

// bit is the set of number n alone.
func bit(n int) Set {
	if n < 64 {
		return Set{low: 1 << n}
	}
	return Set{high: 1 << (n - 64)}
}

// MostNames is the largest number of members of a set.
const MostNames = 128

// Number is the set of number n alone, of a trace's names.
func Number(n int) Set { return bit(n) }

// Or is the union.
func (s Set) Or(o Set) Set { return Set{s.low | o.low, s.high | o.high} }

// And is the intersection.
func (s Set) And(o Set) Set { return Set{s.low & o.low, s.high & o.high} }

// Without is the difference s - o.
func (s Set) Without(o Set) Set { return Set{s.low &^ o.low, s.high &^ o.high} }

// Meets reports whether the intersection is not empty.
func (s Set) Meets(o Set) bool { return s.low&o.low|s.high&o.high != 0 }

// Empty reports whether it has no member.
func (s Set) Empty() bool { return s.low|s.high == 0 }
