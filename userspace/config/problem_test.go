package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Quotes of a file in an error are bounded, and so are the errors; the allowed values are still at the end.
func TestComplaintsAreBounded(t *testing.T) {
	kind := Object[struct{}]{What: "the file", Defaults: func() struct{} { return struct{}{} }, Fields: []Field[struct{}]{
		Entry("name", "a name", Word{What: "name", Check: func(text string) error { return fmt.Errorf("name %q: 1 to 64 letters", text) }}, false, func(*struct{}, any) {})}}
	for _, value := range []string{strings.Repeat("x", 70_000), strings.Repeat("x y ", 20_000), strings.Repeat("\u00e9", 70_000)} {
		_, err := Parse("f", "keys are", []byte("name: \""+value+"\"\n? \""+value+"\"\n: 1\n"), kind)
		if err == nil {
			t.Fatal("no error")
		}
		text := err.Error()
		if len(text) > 6000 || !utf8.ValidString(text) || !strings.Contains(text, "name \"") || !strings.Contains(text, "1 to 64 letters") || !strings.Contains(text, " characters)...") {
			t.Errorf("%d bytes: %.3000s", len(text), text)
		}
	}
	var many strings.Builder
	for n := range 5000 {
		fmt.Fprintf(&many, "key%d: 1\n", n)
	}
	_, err := Parse("f", "keys are", []byte(many.String()), kind)
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 51 || lines[50] != "f: and 4950 more errors" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// A duration has both bounds, and a unit.
func TestDuration(t *testing.T) {
	type file struct{ wait time.Duration }
	kind := Object[file]{What: "the file", Defaults: func() file { return file{} }, Fields: []Field[file]{
		Entry("wait", "a duration", Duration{What: "wait", Min: time.Second, Max: time.Minute}, false, func(f *file, v any) { f.wait = v.(time.Duration) })}}
	for text, want := range map[string]string{
		"1s": "", "1m": "", "999ms": "allowed are 1s to 1m0s", "61s": "allowed are 1s to 1m0s", "-5s": "allowed are 1s to 1m0s", "5": "give a duration like 10s", "soon": "give a duration like 10s",
	} {
		f, err := Parse("f", "keys are", []byte("wait: "+text+"\n"), kind)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
			continue
		}
		if d, _ := time.ParseDuration(text); err != nil || f.wait != d {
			t.Errorf("%s: %v, %v", text, f.wait, err)
		}
	}
}
