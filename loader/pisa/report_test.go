package pisa

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

func rowOf(t *testing.T, r *Report, name string) Array {
	t.Helper()
	for _, a := range r.Arrays {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no array %s in the report", name)
	return Array{}
}

func algorithmsReport(t *testing.T) *Report {
	t.Helper()
	r, err := Prove(loadSpec(t, "testdata/algorithms.o"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReportRows(t *testing.T) {
	r := algorithmsReport(t)
	sum := rowOf(t, r, "first_sum")
	if *sum.Stage != 1 || sum.WidthBits != 32 || sum.Entries != 1024 || sum.Banks != 2 || sum.Bits != 65536 {
		t.Errorf("first_sum: %+v", sum)
	}
	if sum.KernelBytes != 2*1024*8 { // a value of 4 bytes takes 8
		t.Errorf("first_sum takes %d bytes of the kernel", sum.KernelBytes)
	}
	if !sum.Atomic || strings.Join(sum.Programs, " ") != "first_tc first_xdp" {
		t.Errorf("first_sum: atomic %t, programs %v", sum.Atomic, sum.Programs)
	}
	phv := rowOf(t, r, declared.VectorName)
	if phv.Stage != nil || phv.KernelBytes != uint64(phv.WidthBits/8*r.PossibleCPUs) || !phv.Shared {
		t.Errorf("vector: %+v", phv)
	}
	writes := make(map[string]declared.Kind)
	for _, o := range r.OtherWrites {
		writes[o.Name] = o.Kind
	}
	if len(writes) != 2 || writes[declared.VectorName] != declared.Scratch || writes["recirc_budget"] != declared.Budget {
		t.Errorf("other writes: %v", writes)
	}
}

func TestReportAsText(t *testing.T) {
	var out strings.Builder
	if err := algorithmsReport(t).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ARRAY", "first_table", "second_table", "OTHER WRITES", "Tofino 1: fits, 2 of 12 stages", "Tofino 2: fits, 2 of 20 stages"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestReportAsJSON(t *testing.T) {
	var out bytes.Buffer
	if err := algorithmsReport(t).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Arrays []struct {
			Name  string `json:"name"`
			Stage *int   `json:"stage"`
			Bits  uint64 `json:"bits"`
		} `json:"arrays"`
		Targets []struct {
			Name string `json:"name"`
			Fits bool   `json:"fits"`
		} `json:"targets"`
	}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Targets) != 2 || !back.Targets[0].Fits || back.Arrays[0].Stage == nil || back.Arrays[0].Bits == 0 {
		t.Errorf("read back %+v", back)
	}
	if strings.Contains(out.String(), "null,") && strings.Contains(out.String(), `"programs": null`) {
		t.Error("lists are lists, even if they are empty")
	}
}

// TestFactsOfTheTofino: sizes that the compiler was seen to take and to refuse (p4c 1.2.5.16).
func TestFactsOfTheTofino(t *testing.T) {
	at := func(stages ...int) (out []*int) {
		for _, s := range stages {
			out = append(out, &s)
		}
		return out
	}
	array := func(stage *int, entries uint64, width int) Array {
		return Array{Name: "a", Kind: declared.Register, Stage: stage, WidthBits: width, Entries: entries, Banks: 1, Touches: 1, Bits: entries * uint64(width)}
	}
	s := at(0, 11, 12, 19)
	for name, c := range map[string]struct {
		arrays []Array
		t1, t2 bool
	}{
		"143,360 x 32":           {[]Array{array(s[0], 143_360, 32)}, true, true},
		"147,456 x 32":           {[]Array{array(s[0], 147_456, 32)}, false, false},
		"71,680 pairs":           {[]Array{array(s[0], 71_680, 64)}, true, true},
		"573,440 x 8":            {[]Array{array(s[0], 573_440, 8)}, true, true},
		"573,441 x 8":            {[]Array{array(s[0], 573_441, 8)}, false, false},
		"two of 65,536":          {[]Array{array(s[0], 65_536, 32), array(s[0], 65_536, 32)}, true, true},
		"three of 65,536":        {[]Array{array(s[0], 65_536, 32), array(s[0], 65_536, 32), array(s[0], 65_536, 32)}, false, false},
		"24 bits":                {[]Array{array(s[0], 16, 24)}, false, false},
		"last stage of Tofino 1": {[]Array{array(s[1], 16, 32)}, true, true},
		"after it":               {[]Array{array(s[2], 16, 32)}, false, true},
		"last stage of Tofino 2": {[]Array{array(s[3], 16, 32)}, false, true},
	} {
		targets := fit(c.arrays)
		if targets[0].Fits != c.t1 || targets[1].Fits != c.t2 {
			t.Errorf("%s: fits %t and %t, want %t and %t (%s)", name, targets[0].Fits, targets[1].Fits, c.t1, c.t2, targets[1].Reason)
		}
		if !targets[1].Fits && targets[1].Reason == "" {
			t.Errorf("%s: no reason", name)
		}
	}
	if got := blocks(array(s[0], 65_536, 32)); got != 17 {
		t.Errorf("65,536 x 32 take %d blocks, want 17", got)
	}
}

// TestMessage: an operator reads the rule, the program, the map, the line and what to do; once for both hooks.
func TestMessage(t *testing.T) {
	one := rule.Violation{Rule: 2, Code: rule.SecondAccess, Program: "f_tc", Map: "table", Insn: 7, Source: "f.c:3: reg_add(a, 1);", Reason: "why"}
	two := one
	two.Program = "f_xdp"
	text := (&rule.Violations{List: []rule.Violation{one, two}}).Error()
	for _, want := range []string{"rule 2", "f_tc, f_xdp", "table", "f.c:3", "remedy: ", "memory rules"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "why") != 1 {
		t.Errorf("reported twice:\n%s", text)
	}
	for code := range rule.Remedies {
		if code == "" || rule.Remedies[code] == "" {
			t.Errorf("no remedy for %q", code)
		}
	}
}
