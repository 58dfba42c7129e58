package known

import "testing"

// A text of foreign origin has at most so many bytes, of whole characters, none of which controls a terminal.
func TestSanitized(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 3, "aé"}, {"aéb", 3, "aé"}, {"aé", 2, "a"}, {"é", 1, ""}, {"\x80\x80\x80", 1, ""}, {"a\x1b[2J\u202eb\xffc", 20, "a[2Jbc"}, {"", 0, ""}, {"a", 0, ""}} {
		if got := Sanitized(c.text, c.most); got != c.want {
			t.Errorf("%q, %d: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// A row names hosts by their most specific name, and services beside them.
func TestNames(t *testing.T) {
	web := Name{Column: "src", Of: "10.1.1.1", Guest: Guest{GuestPod, "6a1f"}, DNS: "web.example", AS: 64500, ASName: "Example"}
	out := Name{Of: "192.0.2.1", DNS: "www.example", Country: "DE"}
	far := Name{Of: "192.0.2.2", AS: 64501, Country: "DE"}
	port := Name{Of: "443", Service: "https"}
	for want, names := range map[string][]Name{
		"": nil, "pod 6a1f": {web}, "pod 6a1f > www.example (https)": {web, out, port}, "AS64501, DE": {far}, "https": {port}, "www.example": {{Of: "x"}, out}, "https, domain": {port, {Of: "53", Service: "domain"}},
	} {
		if got := Row(names); got != want {
			t.Errorf("%+v: %q, want %q", names, got, want)
		}
	}
	for want, n := range map[string]Name{"pod 6a1f, web.example, AS64500 Example": web, "AS64501, DE": far, "Example": {ASName: "Example"}, "https": port, "": {Of: "10.1.1.1"}, `a\x1bb`: {DNS: "a\x1bb"}, "container 12, DE": {Guest: Guest{GuestContainer, "12"}, Country: "DE"},
		"lxc web": {Guest: Guest{GuestLXC, "web"}}, "vm-1": {Guest: Guest{GuestDomain, "vm-1"}}, "blue": {Guest: Guest{GuestNamespace, "blue"}}} {
		if got := n.String(); got != want || n.Known() != (want != "") {
			t.Errorf("%+v: %q, known %v, want %q", n, got, n.Known(), want)
		}
	}
}
