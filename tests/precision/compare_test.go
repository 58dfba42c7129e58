package precision

import (
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// TestProverRejectsHashPipe: whether a key array is written depends on the counter after it (section 3.3.2), from the second
// way on; the first way, which always inserts, is no offender.
func TestProverRejectsHashPipe(t *testing.T) {
	testutil.NeedRoot(t)
	for _, ways := range []int{2, 4, 6} {
		h, err := HashPipe(ways, 252, 0)
		if err != nil {
			t.Fatal(err)
		}
		inst, err := loader.Load([]loader.Object{h.Object}, loader.Options{Replay: true, Seed: 1})
		if err == nil {
			inst.Close()
			t.Fatalf("the prover accepts HashPipe with %d ways", ways)
		}
		for _, reason := range []string{"hashpipe_a1", "continues after hashpipe_c1", "rule 2"} {
			if !strings.Contains(err.Error(), reason) {
				t.Errorf("%d ways: the reason does not name %q: %v", ways, reason, err)
			}
		}
		if strings.Contains(err.Error(), "hashpipe_a0") {
			t.Errorf("%d ways: the first way is blamed too: %v", ways, err)
		}
	}
}

// TestProverAcceptsTheOthers: PRECISION and CocoSketch keep the rules at every size and number of ways.
func TestProverAcceptsTheOthers(t *testing.T) {
	for ways := 1; ways <= 4; ways++ {
		c, err := CocoSketch(ways, 1024)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pisa.Prove(c.Object.Spec); err != nil {
			t.Errorf("CocoSketch, %d ways: %v", ways, err)
		}
		for _, admission := range []string{"exact", "pow2", "9/8", "deterministic"} {
			p, err := Precision(map[string]string{"ways": string(rune('0' + ways)), "entries": "1200", "family": "both", "admission": admission})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pisa.Prove(p.Object.Spec); err != nil {
				t.Errorf("precision, %d ways, %s: %v", ways, admission, err)
			}
		}
	}
}

// TestEveryKeyKeepsTheRules: each kind of key and family is proven in its configuration.
func TestEveryKeyKeepsTheRules(t *testing.T) {
	for _, kind := range heavy.KindNames {
		for _, family := range heavy.FamilyNames {
			p, err := Precision(map[string]string{"key": kind, "family": family})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pisa.Prove(p.Object.Spec); err != nil {
				t.Errorf("%s, family %s: %v", kind, family, err)
			}
		}
	}
}
