package layout

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestParseParts(t *testing.T) {
	for text, want := range map[string][]Part{
		"65536@1":                        {{Slots: 65536, P: 1, Share: 1}},
		"32768@1/2,32768@1/64":           {{Slots: 32768, P: 0.5, Share: 0.5}, {Slots: 32768, P: 1.0 / 64, Share: 0.5}},
		"4096@1:15/16, 2@0.25:1/16":      {{Slots: 4096, P: 1, Share: 0.9375}, {Slots: 2, P: 0.25, Share: 0.0625}},
		"4096@1:3/4,16@1,16@1/65536":     {{Slots: 4096, P: 1, Share: 0.75}, {Slots: 16, P: 1, Share: 0.125}, {Slots: 16, P: 1.0 / 65536, Share: 0.125}},
		"1048576@1,1048576@1,2@1,1024@1": {{1048576, 1, 0.25, 0}, {1048576, 1, 0.25, 0}, {2, 1, 0.25, 0}, {1024, 1, 0.25, 0}},
	} {
		got, err := Parse(text)
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %v, %v", text, got, err)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: fridge %d is %+v, want %+v", text, i, got[i], want[i])
			}
		}
	}
}

// TestPartsRounded: what the data plane cannot do exactly is corrected as it does it.
func TestPartsRounded(t *testing.T) {
	parts, err := Parse("4096@1/3,4096@0.1,4096@1")
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for i, p := range parts {
		for what, x := range map[string]float64{"p": p.P, "share": p.Share} {
			if x*One != math.Round(x*One) {
				t.Errorf("fridge %d: %s = %g is no multiple of 1/65536", i, what, x)
			}
		}
		total += p.Share
	}
	if total != 1 {
		t.Errorf("shares add up to %g", total)
	}
	places := Of(parts)
	if last := places[2]; last.Route != One || last.Base != 8192 || last.Bits != 12 {
		t.Errorf("the last fridge is %+v", last)
	}
}

func TestPartsRefused(t *testing.T) {
	for text, contains := range map[string]string{
		"":                                    "entry probability",
		"65536":                               "entry probability",
		"1000@1":                              "powers of two",
		"1@1":                                 "2 to 1048576",
		"2097152@1":                           "1048576",
		"64@0":                                "1/65536 to 1",
		"64@1.01":                             "1/65536 to 1",
		"64@x":                                "1/65536 to 1",
		"64@1:2":                              "1/65536 to 1",
		"64@1:0.5,64@1:0.4":                   "must make 1",
		"64@1:1,64@1":                         "must make 1",
		"64@1:1/2,64@1:32767/65536,64@1,64@1": "below 1/65536",
		"64@1,64@1,64@1,64@1,64@1":            "at most 4",
		"64@1,,64@1":                          "entry probability",
		"64@NaN":                              "1/65536 to 1",
		"9223372036854775808@1":               "powers of two",
		"64@1:1/4,64@1:1/4,64@1:1/4,x@":       "sizes",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), contains) {
			t.Errorf("%q: %v, want something about %q", text, err, contains)
		}
	}
	if _, err := Parse("64@1,64"); !errors.Is(err, errFridges) {
		t.Errorf("the error does not state the syntax: %v", err)
	}
}

func TestShards(t *testing.T) {
	for _, c := range []struct {
		fridges, shards string
		want            []int
	}{
		{"256@1", Auto, []int{1}},
		{"512@1", Auto, []int{2}},
		{"4096@1", Auto, []int{16}},
		{"65536@1", Auto, []int{256}},
		{"1048576@1", Auto, []int{1024}},
		{"1048576@1,1048576@1", Auto, []int{512, 512}},
		{"1048576@1,64@1,1024@1", Auto, []int{256, 1, 4}},
		{"2@1", Auto, []int{1}},
		{"65536@1,128@1", "8", []int{8, 8}},
	} {
		parts, err := Parse(c.fridges)
		if err != nil {
			t.Fatal(err)
		}
		if err := Shard(parts, c.shards); err != nil {
			t.Errorf("%s: %v", c.fridges, err)
		}
		for i, p := range parts {
			if p.Shards != c.want[i] {
				t.Errorf("%s: fridge %d has %d shards, want %d", c.fridges, i, p.Shards, c.want[i])
			}
		}
	}
	for _, text := range []string{"0", "3", "2048", "many", "-1", "64"} {
		if err := Shard([]Part{{Slots: 64}}, text); err == nil {
			t.Errorf("%s shards of 64 entries are accepted", text)
		}
	}
}

func TestFraction(t *testing.T) {
	for p, want := range map[float64]string{1: "1", 0.5: "1/2", 1.0 / 64: "1/64", 0.3: "0.3", 0.75: "0.75", 1.0 / 65536: "1/65536"} {
		if got := Fraction(p); got != want {
			t.Errorf("Fraction(%g) = %s, want %s", p, got, want)
		}
	}
}
