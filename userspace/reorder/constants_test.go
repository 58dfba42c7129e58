package reorder

import (
	"testing"

	"github.com/xdpmon/xdpmon/bpf/constant"
)

// The constants of the data plane.
func TestConstants(t *testing.T) {
	c := configured(t, map[string]string{"prefix": "20", "prefix6": "40", "T": "1024us", "Rshare": "0.25"}).constants()
	for name, want := range map[constant.Name]any{constant.ReorderMask4: uint32(0xfffff000), constant.ReorderMask6: uint64(0xffffffffff000000), constant.ReorderStale: uint32(1000),
		constant.ReorderShare: uint32(1 << 14)} {
		if c[name] != want {
			t.Errorf("%s is %v, want %v", name, c[name], want)
		}
	}
}
