package algo

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

var declared = []Param{
	{Key: "n", Type: Int, Default: "4", Min: "2", Max: "0x10"},
	{Key: "share", Type: Float, Default: "1/64", Min: "1/1024", Max: "1"},
	{Key: "any", Type: Float, Default: "0"},
	{Key: "wait", Type: Duration, Default: "1s", Min: "1ms", Max: "1m"},
	{Key: "memory", Type: Size, Default: "64KiB", Min: "1kB", Max: "1GiB"},
	{Key: "on", Type: Bool, Default: "false"},
	{Key: "way", Type: Enum, Default: "a", Choices: []string{"a", "b"}},
	{Key: "text", Type: String, Default: "free"},
}

// A value is taken as it was declared, bounds included, and refused with its name, itself and what is allowed.
func TestValues(t *testing.T) {
	for _, c := range []struct{ key, text, contains string }{
		{"n", "2", ""}, {"n", "0x10", ""}, {"n", "1", "set x.n=1: allowed are 2 to 0x10"}, {"n", "17", "allowed are 2 to 0x10"}, {"n", "two", `"two" is not an integer`},
		{"share", "1", ""}, {"share", "1/1024", ""}, {"share", " 1 / 2", ""}, {"share", "1/1025", "1/1024 to 1"}, {"share", "1.01", "1/1024 to 1"},
		{"share", "NaN", "1/1024 to 1"}, {"share", "1/0", "not a number or a fraction"}, {"share", "1/", "not a number"}, {"share", "/2", "not a number"},
		{"any", "-1e300", ""}, {"wait", "1ms", ""}, {"wait", "1m", ""}, {"wait", "999us", "1ms to 1m"}, {"wait", "61s", "1ms to 1m"}, {"wait", "5", "not a duration"},
		{"memory", "1000", ""}, {"memory", "999B", "1kB to 1GiB"}, {"memory", "1 GiB", ""}, {"memory", "2GB", "1kB to 1GiB"}, {"memory", "-1kB", "not a size"},
		{"memory", "InfMB", "not a size"}, {"memory", "1TB", "not a size"}, {"on", "true", ""}, {"on", "yes", "neither true nor false"},
		{"way", "b", ""}, {"way", "c", "choose one of a, b"}, {"text", "whatever", ""}, {"none", "1", "x has any, memory, n, on, share, text, wait, way"},
	} {
		v, err := NewValues("x", declared, map[string]string{c.key: c.text})
		switch {
		case c.contains == "" && err != nil:
			t.Errorf("%s=%s: %v", c.key, c.text, err)
		case c.contains == "" && v.Text(c.key) != c.text:
			t.Errorf("%s=%s is %s", c.key, c.text, v.Text(c.key))
		case c.contains != "" && (err == nil || !strings.Contains(err.Error(), c.contains)):
			t.Errorf("%s=%s: %v, want something with %q", c.key, c.text, err, c.contains)
		}
	}
}

func TestValuesByType(t *testing.T) {
	v, err := NewValues("x", declared, map[string]string{"n": "0x10", "wait": "30ms", "on": "true", "memory": "40kB"})
	if err != nil {
		t.Fatal(err)
	}
	if v.Int("n") != 16 || v.Float("share") != 1.0/64 || v.Duration("wait") != 30*time.Millisecond || v.Bytes("memory") != 40_000 || !v.Bool("on") {
		t.Errorf("%d, %g, %v, %d, %v", v.Int("n"), v.Float("share"), v.Duration("wait"), v.Bytes("memory"), v.Bool("on"))
	}
	m := v.Map()
	if len(m) != len(declared) || m["n"] != int64(16) || m["on"] != true || m["share"] != "1/64" || m["way"] != "a" {
		t.Errorf("for the report: %v", m)
	}
	if err := v.Error("way", "allowed is b"); err.Error() != "set x.way=a: allowed is b" {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("an undeclared parameter has a value")
		}
	}()
	v.Text("none")
}

// A lower or an upper bound alone is one.
func TestOneBound(t *testing.T) {
	for _, c := range []struct {
		p            Param
		ok, contains string
		bad          string
	}{
		{Param{Type: Int, Min: "3"}, "3", "3 to any", "2"},
		{Param{Type: Int, Max: "3"}, "-9", "any to 3", "4"},
	} {
		if err := c.p.check(c.ok); err != nil {
			t.Error(err)
		}
		if err := c.p.check(c.bad); err == nil || !strings.Contains(err.Error(), c.contains) {
			t.Errorf("%s: %v", c.bad, err)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "7": 7, "7B": 7, "1.5KiB": 1536, "1KiB": 1 << 10, "3MiB": 3 << 20, "2GiB": 2 << 30, "5kB": 5_000,
		"5MB": 5_000_000, "5GB": 5_000_000_000} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]float64{"3": 3, "1/4": 0.25, "3 / 4": 0.75, "-2": -2} {
		if got, err := ParseFloat(text); err != nil || math.Abs(got-want) > 1e-15 {
			t.Errorf("%s is %g, %v", text, got, err)
		}
	}
}

func TestRegistry(t *testing.T) {
	was := registry
	registry = map[string]*Descriptor{}
	defer func() { registry = was }()
	b, a := &Descriptor{Name: "b"}, &Descriptor{Name: "a"}
	Register(b)
	Register(a)
	if !slices.Equal(Names(), []string{"a", "b"}) || !slices.Equal(All(), []*Descriptor{a, b}) {
		t.Errorf("%v, %v", Names(), All())
	}
	if d, err := Lookup("b"); d != b || err != nil {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := Lookup("c"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `"c": there are a, b`) {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a name was registered twice")
		}
	}()
	Register(&Descriptor{Name: "a"})
}

func TestNotify(t *testing.T) {
	Env{}.Notify("to nobody")
	var noticed string
	Env{Notice: func(format string, args ...any) { noticed = format }}.Notify("%d")
	if noticed != "%d" {
		t.Errorf("noticed %q", noticed)
	}
}

// TestWrongType: a parameter of another type is no silent 0.
func TestWrongType(t *testing.T) {
	v, err := NewValues("it", []Param{{Key: "n", Type: Int, Default: "7"}, {Key: "size", Type: Size, Default: "4"}, {Key: "choice", Type: Enum, Default: "auto", Choices: []string{"auto", "4"}}},
		map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Int("n") != 7 || v.Bytes("size") != 4 {
		t.Errorf("n is %d, size %d", v.Int("n"), v.Bytes("size"))
	}
	for name, ask := range map[string]func(){
		"Float": func() { v.Float("n") }, "Duration": func() { v.Duration("n") }, "Bytes": func() { v.Bytes("n") }, "Bool": func() { v.Bool("n") },
		"Int of a size": func() { v.Int("size") }, "Int of auto": func() { v.Int("choice") }, "unknown name": func() { v.Int("m") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			ask()
		}()
	}
	if v, err = NewValues("it", []Param{{Key: "choice", Type: Enum, Default: "4", Choices: []string{"auto", "4"}}}, nil); err != nil || v.Int("choice") != 4 {
		t.Errorf("an enumeration's 4 is not read as a number: %v", err)
	}
}

// A duration may be left to the algorithm; another is within its bounds.
func TestDurationOr(t *testing.T) {
	params := []Param{{Key: "tau", Type: String, Default: "auto"}}
	for text, want := range map[string]time.Duration{"auto": 7 * time.Second, "1s": time.Second, "1m": time.Minute, "999ms": 0, "61s": 0, "x": 0, "-5s": 0} {
		v, err := NewValues("a", params, map[string]string{"tau": text})
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.DurationOr("tau", 7*time.Second, time.Second, time.Minute)
		if got != want || (err == nil) != (want > 0) || err != nil && !strings.Contains(err.Error(), "durations from 1s to 1m0s") {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
