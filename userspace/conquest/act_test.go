package conquest

import (
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/loader/pisa"
)

// Whatever is done to culprits, the programs keep the memory rules: what is dead by default is looked at here.
func TestActionsAreProven(t *testing.T) {
	for _, set := range []map[string]string{
		{"action": "ecn"}, {"action": "drop", "chance": "quadratic"}, {"action": "drop", "chance": "steps"}, {"action": "mark", "to": "7", "chance": "linear"},
		{"action": "class", "to": "1:20"}, {"action": "ecn", "whom": "everyone"}, {"action": "ecn", "snapshots": "8"},
	} {
		set["source"] = "qdisc"
		c, err := newConfig(values(t, set), false)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := bpf.LoadConquest()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.configure(spec); err != nil {
			t.Fatal(err)
		}
		if _, err := pisa.Prove(spec); err != nil {
			t.Errorf("%v: %v", set, err)
		}
	}
}
