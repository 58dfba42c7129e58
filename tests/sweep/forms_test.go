package sweep

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// drawn are parameters at random: choices, and numbers at their ends and at powers of two between.
func drawn(d *algo.Descriptor, r *rand.Rand) map[string]string {
	set := map[string]string{}
	for _, p := range d.Params {
		if r.IntN(3) > 0 {
			continue
		}
		switch p.Type {
		case algo.Enum:
			set[p.Key] = p.Choices[r.IntN(len(p.Choices))]
		case algo.Bool:
			set[p.Key] = strconv.FormatBool(r.IntN(2) == 0)
		case algo.String, algo.Float, algo.Size, algo.Duration:
			if list := asks[d.Name+"."+p.Key]; list != nil {
				set[p.Key] = list[r.IntN(len(list))]
			}
		case algo.Int:
			low, errLow := strconv.ParseInt(p.Min, 10, 64)
			high, errHigh := strconv.ParseInt(p.Max, 10, 64)
			if errLow != nil || errHigh != nil {
				continue
			}
			list := []int64{low, high}
			for n := int64(1); n < min(high, 1<<20); n *= 2 {
				if n > low {
					list = append(list, n)
				}
			}
			set[p.Key] = strconv.FormatInt(list[r.IntN(len(list))], 10)
		}
	}
	return set
}

// strings that ask for something, of parameters that are text.
var asks = map[string][]string{
	"ahab.capacity":  {"100Mbit"},
	"carpe.s":        {"1", "1/4"},
	"conquest.ramp":  {"1000"},
	"conquest.to":    {"7"},
	"fridge.fridges": {"32768@1/2,32768@1/64", "4096@1"}, "fridge.group": {"src/24", "dst/16", "dport", "vlan"}, "fridge.sla": {"10ms"},
	"hhh.recirculation":       {"0.01", "0.1"},
	"lean.stat":               {"latency", "loss", "ooo", "retrans", "latency,loss", "ooo,retrans"},
	"precision.recirculation": {"0.01", "0.1"},
	"reorder.recirculate":     {"0.01", "1"},
}

// onlySizes: rule 6 is about sizes, which the parameters of a host may exceed, and its error states the remedy.
func onlySizes(err error) bool {
	sizes := false
	for line := range strings.SplitSeq(err.Error(), "\n") {
		switch {
		case strings.HasPrefix(line, "rule 6 "):
			sizes = true
		case strings.HasPrefix(line, "rule "):
			return false
		}
	}
	return sizes
}

// Every documented choice works: a form is rejected by its parameters, or the prover accepts it.
// XDPMON_FORMS is how many of each algorithm, XDPMON_FORMS_SEED which.
func TestDrawnFormsAreProven(t *testing.T) {
	number := func(name string, n int) int {
		if text, ok := os.LookupEnv(name); ok {
			var err error
			if n, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	forms, seed := number("XDPMON_FORMS", 10), number("XDPMON_FORMS_SEED", 1)
	forAll(t, func(t *testing.T, s session.Selected) {
		name := fnv.New64a()
		name.Write([]byte(s.Descriptor.Name))
		r := rand.New(rand.NewPCG(uint64(seed), name.Sum64()))
		proven := 0
		for tries := 0; proven < forms; tries++ {
			if tries > 200*forms {
				t.Fatalf("%d of %d sets of parameters were taken", proven, tries)
			}
			set := drawn(s.Descriptor, r)
			values, err := algo.NewValues(s.Descriptor.Name, s.Descriptor.Params, set)
			if err != nil {
				continue
			}
			objects, _, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: s.Descriptor, Values: values}}, Seed: 1}, false)
			if err != nil {
				continue
			}
			spec, err := objects[0].Whole()
			if err != nil {
				t.Errorf("%v: %v", set, err)
				continue
			}
			proven++
			if _, err := pisa.Prove(spec); err != nil && !onlySizes(err) {
				t.Errorf("%v: %v", set, err)
			}
		}
	})
}
