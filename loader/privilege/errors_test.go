package privilege

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDescriptorRemedy: the number that is named is above the present limit, and enough.
func TestDescriptorRemedy(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for _, needed := range []uint64{0, 100, 5000, limit.Cur, 3 * limit.Cur} {
		var n, again uint64
		text := DescriptorRemedy(needed)
		_, rest, _ := strings.Cut(text, "(")
		if _, err := fmt.Sscanf(rest, "ulimit -n %d, LimitNOFILE=%d of", &n, &again); err != nil || n != again || n < needed || n < 2*limit.Cur || n < leastDescriptors {
			t.Errorf("%d are needed, the limit is %d: %s (%v)", needed, limit.Cur, text, err)
		}
	}
}
