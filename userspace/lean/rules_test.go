package lean

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

func rulesOf(t *testing.T, set map[string]string) (r Rules) {
	set["loss.id"] = "ipid" // as the twin has it
	t.Helper()
	v, err := algo.NewValues(Name, params, set)
	if err != nil {
		t.Fatal(err)
	}
	text, err := Descriptor().P4Rules(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRules: a delay is worth itself times 1/p, and times what its like lose by eviction at the rate that was measured. A rule is
// what concerns the delay itself.
func TestRules(t *testing.T) {
	quiet, busy := rulesOf(t, map[string]string{"p": "1/8"}), rulesOf(t, map[string]string{"p": "1/8", "switch.rate": "20000"})
	if quiet.Follow[0].Luck.Mask != 0xe000 || quiet.Follow[1].Luck.Mask != 0xe000 {
		t.Errorf("1/8 of the segments: masks %#x and %#x of 16 bits, want the upper three", quiet.Follow[0].Luck.Mask, quiet.Follow[1].Luck.Mask)
	}
	for i, r := range quiet.Values {
		low, high := delayBins.Range(i + 1)
		ticks := float64(low+high-1) / 2
		if want := math.Round(ticks*8) - math.Round(ticks); float64(r.Value) != want {
			t.Fatalf("%v ticks are worth %d more, want %v", ticks, r.Value, want)
		}
		lost := math.Pow(1-1/2048.0, 20000*ticks*8192e-9)
		want := min(ticks*8*min(1/lost, heaviest), math.MaxInt32/8) - math.Round(ticks)
		if have := float64(busy.Values[i].Value); math.Abs(have-want) > 0.5+1e-9*math.Abs(want)+1e-9*ticks {
			t.Fatalf("%v ticks with 20,000 insertions a second are worth %v more, want %v", ticks, have, want)
		}
	}
}

// TestLimitRules: every row that the pipeline reads gets a limit in both directions.
func TestLimitRules(t *testing.T) {
	have := map[string]int32{}
	for _, l := range rulesOf(t, map[string]string{"switch.limit": "latency=300, ooo=20"}).Limits {
		have[l.Param] = l.Value
	}
	for param, want := range map[string]int32{
		"lat_0.at_least": 300, "lat_3.at_most": -300, "ooo_1.at_least": 19, "ooo_2.at_most": -19, "loss_0.at_least": 1, "ret_0.at_most": 0,
	} {
		if n, ok := have["Ingress.lean."+param]; !ok || n != want {
			t.Errorf("%s is %d (there: %v), want %d", param, n, ok, want)
		}
	}
	if len(have) != 32 {
		t.Errorf("%d parameters, want two for each of 16 rows", len(have))
	}
}

func TestRulesRefuse(t *testing.T) {
	for _, set := range []map[string]string{
		{"p": "1/3"}, {"p": "0.03"}, {"switch.rate": "-1"}, {"switch.rate": "NaN"}, {"switch.limit": "0"}, {"switch.limit": "rtt=3"}, {"switch.limit": "x"},
	} {
		v, err := algo.NewValues(Name, params, set)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Descriptor().P4Rules(v); err == nil || !strings.Contains(err.Error(), "set lean.") {
			t.Errorf("%v: %v, want an error that names the parameter", set, err)
		}
	}
}

// TestTwinWeights: the entries that a switch begins with are what the host's table begins with at the same p.
func TestTwinWeights(t *testing.T) {
	c := &chance{p: twinP, slots: 2048}
	for bin := 1; bin < delayBins.Len(); bin++ {
		low, high := delayBins.Range(bin)
		at := delayPrefix(bin)
		if at.Value != uint32(low) || at.Value|^at.Mask != uint32(high-1) {
			t.Fatalf("bin %d is [%d, %d), its entry covers %#x to %#x", bin, low, high, at.Value, at.Value|^at.Mask)
		}
		ticks := float64(low+high-1) / 2
		if v := c.worthOf(bin).more; v != uint32(math.Round(ticks*32)-math.Round(ticks)) {
			t.Fatalf("bin %d is worth %d more", bin, v)
		}
	}
}
