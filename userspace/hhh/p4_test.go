package hhh

import (
	"fmt"
	"math/bits"
	"regexp"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// drawnEntry is an entry of a table of levels that chooses by the random word: its value, its mask and its level.
var drawnEntry = regexp.MustCompile(`\(false, 32w(0x[0-9a-f]+) &&& 32w(0x[0-9a-f]+), _\): level_(\d+)\(\);`)

// TestPairLevels: every random word draws the level of an address that the bytecode's product has, and no word is left over; a second pass has the level that its clone carries.
func TestPairLevels(t *testing.T) {
	d, err := algo.Lookup("hhh")
	if err != nil {
		t.Fatal(err)
	}
	for level, n := range map[string]uint64{"byte": 5, "nibble": 9} {
		v, err := algo.NewValues(d.Name, d.Params, map[string]string{"dimension": "both", "level": level, "family": "4", "ways": "2"})
		if err != nil {
			t.Fatal(err)
		}
		parts, err := d.P4(v)
		if err != nil {
			t.Fatal(err)
		}
		controls := strings.Split(parts["tables"], "control Hhh")
		for _, name := range []string{"Source", "Destination"} {
			text := ""
			for _, c := range controls {
				if strings.HasPrefix(c, name) {
					text = c
				}
			}
			next := uint64(0)
			for _, m := range drawnEntry.FindAllStringSubmatch(text, -1) {
				var value, mask, chosen uint64
				if _, err := fmt.Sscan(m[1], &value); err != nil {
					t.Fatal(err)
				}
				if _, err := fmt.Sscan(m[2], &mask); err != nil {
					t.Fatal(err)
				}
				if _, err := fmt.Sscan(m[3], &chosen); err != nil {
					t.Fatal(err)
				}
				size := uint64(1) << bits.TrailingZeros64(mask)
				if last := value + size - 1; mask+size != 1<<32 || value != next || value*n>>32 != chosen || last*n>>32 != chosen {
					t.Errorf("%s, %s: %s", level, name, m[0])
				}
				next = value + size
			}
			if next != 1<<32 {
				t.Errorf("%s, %s: the last random word with an entry is %#x", level, name, next)
			}
			for i := range n {
				if entry := fmt.Sprintf("(true, _, %d): level_%d();", i, i); !strings.Contains(text, entry) {
					t.Errorf("%s, %s: no entry %s", level, name, entry)
				}
			}
		}
	}
}
