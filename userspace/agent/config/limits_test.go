package config

import (
	"fmt"
	"testing"
)

// Limits are what somebody wrote, from the least to the most that makes sense.
func TestLimits(t *testing.T) {
	const rest = "\ninstances:\n  - {name: a, interfaces: [eth0], algorithms: {cells: {}}}\n"
	for _, c := range []struct {
		key, least, less, most, more string
	}{
		{"interfaces", "1", "0", "65536", "65537"}, {"instances", "1", "0", "4096", "4097"},
		{"heap", "32MiB", "31MiB", "4096GiB", "4097GiB"}, {"memory", "64KiB", "63KiB", "4096GiB", "4097GiB"},
	} {
		for text, ok := range map[string]bool{c.least: true, c.less: false, c.most: true, c.more: false} {
			_, err := Parse("f", fmt.Appendf(nil, "limits: {%s: %s}%s", c.key, text, rest))
			if (err == nil) != ok {
				t.Errorf("%s of %s: %v", c.key, text, err)
			}
		}
	}
}
