package precision

import (
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// TestArrival: the mean square error on arrival is at least two times lower than HashPipe's with d = 2 and the same entries, on average over
// seeds: one large flow without an entry makes most of a run's error. All sizes and more seeds are in docs/eval/precision.md.
func TestArrival(t *testing.T) {
	testutil.NeedRoot(t)
	const seeds, entries = 6, 1024
	var ours, theirs [seeds]float64
	err := Parallel(seeds, func(seed int) error {
		b, err := NewBench(uint64(seed)+1, 0)
		if err != nil {
			return err
		}
		defer b.Close()
		stream := Issue(uint64(seed) + 1).New()
		p, err := Precision(map[string]string{"entries": "1024", "admission": "exact", "initial": "1", "recirculation": "1"})
		if err != nil {
			return err
		}
		h, err := HashPipe(2, entries, 2)
		if err != nil {
			return err
		}
		for c, mse := range map[*Contender]*float64{p: &ours[seed], h: &theirs[seed]} {
			out, err := b.Run(c, stream, true)
			if err != nil {
				return err
			}
			*mse = out.MSE
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	us, them := average(ours[:]), average(theirs[:])
	t.Logf("%d entries: %.0f, HashPipe %.0f packets squared", entries, us, them)
	if them < 2*us {
		t.Errorf("error on arrival %.0f, HashPipe's %.0f: want two times lower", us, them)
	}
}
