package reorder

import "testing"

// What the data plane is told.
func TestConstants(t *testing.T) {
	c := configured(t, map[string]string{"prefix": "20", "prefix6": "40", "T": "1024us", "Rshare": "0.25"}).constants()
	for name, want := range map[string]any{"reorder_mask4": uint32(0xfffff000), "reorder_mask6": uint64(0xffffffffff000000), "reorder_stale": uint32(1000),
		"reorder_share": uint32(1 << 14)} {
		if c[name] != want {
			t.Errorf("%s is %v, want %v", name, c[name], want)
		}
	}
}
