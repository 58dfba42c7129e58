package declared

// Set is a set of arrays: bit n is the array with Array.Bit == 1<<n.
type Set = uint64

// Bits of a set that are no arrays.
const (
	Packet    Set = 1 << 63 // what depends on the packet or the clock
	Chance    Set = 1 << 62 // ... on the kernel's random numbers
	Stale     Set = 1 << 61 // ... on memory that this packet has not written
	maxArrays     = 61
)
