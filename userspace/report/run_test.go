package report

import (
	"strings"
	"testing"
)

// The names of the hooks state where programs are: to people in the head line, and to machines as they are. The start of transmission is
// always the way out.
func TestHooksAreNamed(t *testing.T) {
	r := fixtureRun()
	r.Attached = []Attached{{"eth0", "xdp", "generic", "ingress", "xdp"}, {"eth0", "tc", "", "egress", "tcx"}, {"eth0", "trace", "", "egress", "tp_btf"}, {"lo", "tc", "", "ingress", "clsact"}}
	if got := r.placesOf("eth0"); got != " [XDP ingress (generic), TC egress, start of transmission]" {
		t.Errorf("people read %q", got)
	}
	if got := r.placesOf("eth1"); got != "" {
		t.Errorf("nothing is attached there: %q", got)
	}
	text, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"interface":"eth0","hook":"trace","mode":"","direction":"egress","via":"tp_btf"}`, `{"interface":"lo","hook":"tc","mode":"","direction":"ingress","via":"clsact"}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}
