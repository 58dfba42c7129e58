package fridge

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func p4Parts(t *testing.T, set map[string]string) (params, tables string) {
	t.Helper()
	parts, err := descriptor().P4(values(t, set))
	if err != nil {
		t.Fatal(err)
	}
	return parts["params"], parts["tables"]
}

func TestP4Params(t *testing.T) {
	text, _ := p4Parts(t, map[string]string{"fridges": "65536@1/2,32768@1/64"})
	for _, want := range []string{"#define FRIDGE_TICK 6\n", "#define FRIDGE_ENTRIES 98304\n", "#define FRIDGE_SHARDS 384\n",
		"#define FRIDGE_BINS 896\n", "#define FRIDGE_HIST_ENTRIES 7168\n", "#define FRIDGE_SECOND_ENTRIES 3584\n",
		"typedef bit<17> slot_t;\n", "typedef bit<9> shard_t;\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestP4Place(t *testing.T) {
	_, text := p4Parts(t, map[string]string{"fridges": "65536@1/2:3/4,32768@1:1/4"})
	for _, want := range []string{
		"at.slot = 1w0 ++ slot[15:0];", "at.shard = 1w0 ++ slot[15:8];",
		"at.slot = 2w2 ++ slot[14:0];", "at.shard = 2w2 ++ slot[14:8];",
		"(0 .. 49151, 0 .. 32767): in_0(1);", "(0 .. 49151, 32768 .. 65535): in_0(0);", "(49152 .. 65535, 0 .. 65535): in_1(1);",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(text, "in_1(0)") {
		t.Error("a fridge with p = 1 refuses requests")
	}
}

var weightEntry = regexp.MustCompile(`\((\d), 24w0x([0-9a-f]+) &&& 24w0x([0-9a-f]+)\): set_weight\((\d+), (\d+)\);`)

// TestP4Weights: the switch's prefixes give every x the weight that the host's table gives it.
func TestP4Weights(t *testing.T) {
	set := map[string]string{"fridges": "4096@1/2,256@1/64"}
	_, text := p4Parts(t, set)
	table, n := configOf(t, set).weightTable(), weightBins.Len()
	entries := weightEntry.FindAllStringSubmatch(text, -1)
	covered := map[string]int{}
	for _, e := range entries {
		low, _ := strconv.ParseUint(e[2], 16, 32)
		mask, _ := strconv.ParseUint(e[3], 16, 32)
		size := 1<<survivedBits - mask
		k, _ := strconv.Atoi(e[1])
		for _, x := range []uint64{low, low + size/2, low + size - 1} {
			if want := table[k*n+weightBins.Index(x)]; fmt.Sprint(want&math.MaxUint32) != e[4] || fmt.Sprint(want>>32) != e[5] {
				t.Fatalf("fridge %d, x = %d: %s and %s, the host has %#x", k, x, e[4], e[5], want)
			}
		}
		covered[e[1]] += int(size)
	}
	for k, sum := range covered {
		if sum != 1<<survivedBits {
			t.Errorf("fridge %s: entries cover %d x", k, sum)
		}
	}
	if len(covered) != 2 {
		t.Errorf("weights for %d fridges, want 2", len(covered))
	}
}

// TestP4Sizes: every table is as large as its entries.
func TestP4Sizes(t *testing.T) {
	_, text := p4Parts(t, nil)
	for _, table := range regexp.MustCompile(`(?s)const entries = \{(.*?)\n        \}.*?size = (\d+);`).FindAllStringSubmatch(text, -1) {
		if n := fmt.Sprint(strings.Count(table[1], ";")); n != table[2] {
			t.Errorf("%s entries in a table of %s", n, table[2])
		}
	}
	if n := strings.Count(text, "set_bin("); n != 896+176+2*2 { // of delays and 24-bit gaps; the action and the default of each
		t.Errorf("%d bins of delays and gaps, want 896 + 176", n-4)
	}
}

func TestP4Refused(t *testing.T) {
	for _, set := range []map[string]string{{"match": "ntp"}, {"group": "dport"}, {"counter": "inferred"}, {"retransmit": "keep"},
		{"fridges": "256@1,4096@1"}, {"tick": "131.072us"}} {
		if _, err := descriptor().P4(values(t, set)); err == nil {
			t.Errorf("%v is accepted", set)
		}
	}
}
