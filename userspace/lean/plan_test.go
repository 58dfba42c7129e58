package lean

import (
	"errors"
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// planned calculates with defaults.
func planned(t *testing.T, memory int64, extra map[string]string) map[string]float64 {
	t.Helper()
	v, err := algo.NewValues(Name, params, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Descriptor().Plan(v, algo.PlanArgs{RatePerSecond: 117_000, MemoryBytes: memory, Extra: extra})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, value := range b.Values {
		if n, ok := report.Number(value.Value); ok {
			all[value.Name] = n
		}
	}
	return all
}

// The plan for the model agrees with the measurement (docs/eval/lean.md), within five points: mean recall at 40 and 160 kB.
func TestPlanOfModel(t *testing.T) {
	for memory, want := range map[int64][stats]float64{40_000: {0.94, 0.99, 1, 0.93}, 160_000: {0.97, 1, 1, 0.99}} {
		got := planned(t, memory, nil)
		for s := range stats {
			if r := got[s.String()+"_recall"]; math.Abs(r-want[s]) > 0.05 {
				t.Errorf("%s with %d bytes: recall %.3f planned, %.2f measured", s, memory, r, want[s])
			}
			if m := got[s.String()+"_memory"]; m <= 0 || m > float64(memory) {
				t.Errorf("%s with %d bytes: %g are used", s, memory, m)
			}
		}
	}
}

// More memory finds more, more flows less.
func TestPlanGrows(t *testing.T) {
	var last map[string]float64
	for _, memory := range []int64{10_000, 40_000, 160_000} {
		next := planned(t, memory, nil)
		for s := range stats {
			if name := s.String() + "_recall"; next[name] < last[name] || next[name] > 1 {
				t.Errorf("%s with %d bytes: recall %.3f after %.3f", s, memory, next[name], last[name])
			}
		}
		last = next
	}
	few, many := planned(t, 40_000, map[string]string{"flows": "40000"}), planned(t, 40_000, map[string]string{"flows": "3700000"})
	for s := range stats {
		if name := s.String() + "_recall"; few[name] <= many[name] {
			t.Errorf("%s: recall %.3f of 40,000 flows, %.3f of 3.7 million", s, few[name], many[name])
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	v, err := algo.NewValues(Name, params, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []algo.PlanArgs{
		{MemoryBytes: 40_000}, {RatePerSecond: 1e5, MemoryBytes: 100}, {RatePerSecond: 1e5, MemoryBytes: 1e9},
		{RatePerSecond: 1e5, MemoryBytes: 40_000, Extra: map[string]string{"flows": "none"}},
		{RatePerSecond: 1e5, MemoryBytes: 40_000, Extra: map[string]string{"colour": "1"}},
		{RatePerSecond: 1e5, MemoryBytes: 40_000, Extra: map[string]string{"flows": "10"}},
	} {
		if _, err := Descriptor().Plan(v, a); !errors.Is(err, errPlan) {
			t.Errorf("%+v is planned: %v", a, err)
		}
	}
}

// A curve has its values at the ranks that it was made of, lines between their logarithms, and goes on as it ends.
func TestCurve(t *testing.T) {
	c := &curve{values: []float64{3, 2, 0, -1}}
	rank := func(place float64) float64 { return curveFirst*math.Pow(curveRatio, place) - .5 }
	for place, want := range map[float64]float64{0: 3, 1: 2, 2: 0, 3: -1, .5: 2.5, 1.25: 1.5, 2.75: -.75, 4: -2, -1: 4} {
		if got := math.Log(c.at(rank(place))); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %g: %g, want %g", place, got, want)
		}
	}
}
