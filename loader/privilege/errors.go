package privilege

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrDescriptors is wrapped when the process may not open as many files as it needs.
var ErrDescriptors = errors.New("too few file descriptors")

// leastDescriptors is enough for what one command measures.
const leastDescriptors = 4096

// DescriptorRemedy names a limit that suffices where so many descriptors are needed: a power of two, and twice the present limit at least, so that what is
// loaded next does not fail the same way. needed is 0 where it is unknown.
func DescriptorRemedy(needed uint64) string {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		needed = max(needed, 2*min(limit.Cur, 1<<30))
	}
	n := uint64(leastDescriptors)
	for n < needed {
		n *= 2
	}
	return fmt.Sprintf("raise the limit on open files (ulimit -n %d, LimitNOFILE=%d of a service), or measure less at once", n, n)
}
