package conquest

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Code points have the names that routers give them (RFC 2474, 2597, 3246); one without a name is a number.
func TestClass(t *testing.T) {
	for code, want := range map[uint64]string{0: "cs0", 8: "cs1", 56: "cs7", 10: "af11", 14: "af13", 18: "af21", 38: "af43", 46: "ef", 1: "dscp 1", 2: "dscp 2", 11: "dscp 11",
		13: "dscp 13", 42: "dscp 42", 63: "dscp 63"} {
		if got := class(heavy.Key{code << 8}); got != want {
			t.Errorf("%d: %s, want %s", code, got, want)
		}
	}
}
