package rttarray

import (
	"math"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Derived values of the parameters, also at their bounds.
func TestConfig(t *testing.T) {
	const longest = 64 * math.MaxUint32 // ns
	for text, ok := range map[string]bool{"64ns": true, "63ns": false, time.Duration(longest).String(): true, time.Duration(longest + 64).String(): false} {
		if _, err := newConfig(values(t, map[string]string{"expiry": text}), algo.Setup{}); (err == nil) != ok {
			t.Errorf("expiry %s: %v", text, err)
		}
	}
	c, err := newConfig(values(t, map[string]string{"evict": "expiry", "expiry": "1ms", "entries": "1024", "stages": "2"}), algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	if c.rules.Longest != 64<<32-1 {
		t.Errorf("the longest delay is %d ns", c.rules.Longest)
	}
	sizes := c.sizes()
	bins := c.scale().Bins.Len()
	for name, want := range map[string]int{"rtt_stage1": 512, "rtt_stage2": 512, "rtt_stage3": 1, "rtt_stage4": 1, "rtt_survived": 1, "rtt_inserts": 1, "rtt_hist": bins} {
		if sizes[name] != want {
			t.Errorf("%s has %d entries, want %d", name, sizes[name], want)
		}
	}
	if got := c.constants(); got[constant.RttExpiry] != uint32(15625) || got[constant.RttBits] != uint32(9) || got[constant.RttTick] != uint32(6) || got[constant.RttStages] != uint32(2) {
		t.Errorf("constants %v", got)
	}
	c, err = newConfig(values(t, map[string]string{"evict": "cascade", "entries": "64", "stages": "1"}), algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	if sizes := c.sizes(); sizes["rtt_survived"] != 64 || sizes["rtt_hist"] != 16*c.scale().Bins.Len() {
		t.Errorf("a cascade has %v", sizes)
	}
}
