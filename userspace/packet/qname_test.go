package packet

import (
	"strings"
	"testing"
)

// A name that is written is the one that is read; upper and lower case are the same, other names are not.
func TestWireName(t *testing.T) {
	long := strings.Repeat("a", 63)
	for text, want := range map[string]string{
		"www.Example.ORG": "\x03www\x07example\x03org\x00", "www.example.org.": "\x03www\x07example\x03org\x00", ".": "\x00", "": "\x00",
		"a..b": "", long + "a": "", strings.Join([]string{long, long, long, long}, "."): "",
	} {
		if got := WireName(text); got != want {
			t.Errorf("%q is %q on the wire, want %q", text, got, want)
		}
	}
	seen := map[uint64]string{}
	for _, text := range []string{"a", "b", "a.b", "b.a", "ab", "", "example.org", "example.orh", "xexample.org", strings.Repeat("a", 8), strings.Repeat("a", 16)} {
		h := HashName(1, WireName(text))
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q have the same hash", text, other)
		}
		seen[h] = text
		if h == HashName(2, WireName(text)) {
			t.Errorf("%q: the seed does not change the hash", text)
		}
	}
}
