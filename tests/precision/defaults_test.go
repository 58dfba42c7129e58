package precision

import (
	"strconv"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// quiet is a link with so little traffic that most tables have space for all of its flows.
func quiet(seed uint64) Sizes {
	return Sizes{Flows: 1500, Packets: 9000, Offset: 5, Skew: 0.9, Seed: seed}
}

// flat has no dominant flow: consecutive ones differ by a few packets.
func flat(seed uint64) Sizes {
	return Sizes{Flows: 20000, Packets: 200000, Offset: 5, Skew: 0.5, Seed: seed}
}

// The defaults find what exact admission with the initial value 1 finds, less 0.02, whatever the traffic and the size of the table.
func TestDefaultsFindWhatExactAdmissionFinds(t *testing.T) {
	testutil.NeedRoot(t)
	const seeds = 2
	for name, model := range map[string]func(uint64) Sizes{"issue": Issue, "flat": flat, "quiet": quiet} {
		for _, entries := range []int{512, 4096} {
			var found [2]float64
			for seed := range uint64(seeds) {
				stream := model(seed + 1).New()
				for i, set := range []map[string]string{{}, {"admission": "exact", "initial": "1", "recirculation": "1"}} {
					found[i] += one(t, set, stream, entries, seed+1) / seeds
				}
			}
			t.Logf("%s, %d entries: %.4f, exact %.4f", name, entries, found[0], found[1])
			if found[0] < found[1]-0.02 {
				t.Errorf("%s, %d entries: the defaults find %.4f, exact admission %.4f", name, entries, found[0], found[1])
			}
		}
	}
}

func one(t *testing.T, set map[string]string, stream *Stream, entries int, seed uint64) float64 {
	t.Helper()
	with := map[string]string{"entries": strconv.Itoa(entries)}
	for k, v := range set {
		with[k] = v
	}
	c, err := Precision(with)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBench(seed, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	out, err := b.Run(c, stream, false)
	if err != nil {
		t.Fatal(err)
	}
	return recall(stream, out, 128)
}
