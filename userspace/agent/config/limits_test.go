package config

import (
	"fmt"
	"strings"
	"testing"
)

// Limits of a file, from the smallest to the largest sensible value.
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

// Every number, duration and size of a file has bounds, and is accepted at both of them, at any position.
func TestBounds(t *testing.T) {
	const agent = "window: 10s\ninstances:\n  - {name: a, interfaces: [eth0], algorithms: {cells: {}}"
	for _, c := range []struct {
		before, behind                string
		least, less, most, more, none string
	}{
		{agent + ", window: ", "}", "100ms", "99999us", "24h", "24h1ns", "10"},
		{agent + ", seed: ", "}", "1", "0", "18446744073709551615", "18446744073709551616", "'7'"},
		{agent + "}\nstore: {max_age: ", "}", "1m", "59999ms", "87600h", "87600h1ns", "old"},
		{agent + "}\nstore: {max_bytes: ", "}", "1048576", "1048575", "1024GiB", "1099511627777", ""},
		{agent + "}\nbus: {servers: ['nats://127.0.0.1'], buffer: ", "}", "1MiB", "1048575", "4GiB", "4294967297", "[1]"},
	} {
		for text, ok := range map[string]bool{c.least: true, c.less: false, c.most: true, c.more: false, c.none: false} {
			if _, err := Parse("f", []byte(c.before+text+c.behind)); (err == nil) != ok {
				t.Errorf("%s%s%s: %v", c.before, text, c.behind, err)
			}
		}
	}
}

// Names may have the maximum length, and instances the maximum number of the limits.
func TestLengths(t *testing.T) {
	rule := func(name string) string {
		return "  - {name: " + name + ", interfaces: [eth0], algorithms: {cells: }}\n"
	}
	for name, ok := range map[string]bool{strings.Repeat("n", 32): true, strings.Repeat("n", 33): false, "A.b_c-9": true, "-a": false, ".a": false} {
		if _, err := Parse("f", []byte("instances:\n"+rule(name))); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	text := "limits: {instances: 2}\ninstances:\n" + rule("a") + rule("b")
	if _, err := Parse("f", []byte(text)); err != nil {
		t.Error(err)
	}
	if _, err := Parse("f", []byte(text+rule("c"))); err == nil || !strings.Contains(err.Error(), "f:1:9: there are 3 instances, limits.instances allows 2") {
		t.Errorf("%v", err)
	}
}
