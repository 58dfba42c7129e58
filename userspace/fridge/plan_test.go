package fridge

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func planFor(t *testing.T, rate float64, longest time.Duration, memory int64, set, extra map[string]string) (*report.Body, error) {
	t.Helper()
	return descriptor().Plan(values(t, set), algo.PlanArgs{RatePerSecond: rate, MaxDelayNS: int64(longest), MemoryBytes: memory, Extra: extra})
}

func number(t *testing.T, b *report.Body, name string) float64 {
	t.Helper()
	for _, v := range b.Values {
		if v.Name == name {
			f, ok := report.Number(v.Value)
			if !ok {
				t.Fatalf("%s is %v", name, v.Value)
			}
			return f
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

func TestPlanFits(t *testing.T) {
	for _, memory := range []int64{64 << 10, 1 << 20, 4 << 20, 64 << 20} {
		b, err := planFor(t, 1e6, 4*time.Second, memory, nil, map[string]string{"cpus": "4"})
		if err != nil {
			t.Fatal(err)
		}
		if bytes := number(t, b, "register_bytes"); bytes > float64(memory) {
			t.Errorf("%d bytes given, %g taken", memory, bytes)
		}
		for _, row := range b.Tables[0].Rows {
			parts, err := layout.Parse(row[0].(string))
			if err != nil {
				t.Errorf("the plan cannot be used: %v", err)
				continue
			}
			long := parts[len(parts)-1]
			if lives := 1e6 * 4 / long.Lifetime(); lives < 0.5 || lives > 2 {
				t.Errorf("%v: %.2f lifetimes in the longest delay (section 5.2: half to twice)", row[0], lives)
			}
		}
		if !strings.Contains(b.Notes[0], "--set fridge.fridges=") {
			t.Errorf("no command line: %v", b.Notes)
		}
	}
}

// TestPlanRoot: four times the entries halve the error.
func TestPlanRoot(t *testing.T) {
	l := load{rate: 1e-3, longest: 4e9, shortest: 1e6, answered: 0.4, window: 10e9}
	small, large := l.errors(l.single(4096)), l.errors(l.single(16384))
	for i := range small {
		if ratio := small[i] / large[i]; ratio < 1.8 || ratio > 2.3 {
			t.Errorf("percentile %g: %.3g and %.3g", planned[i], small[i], large[i])
		}
	}
}

// TestPlanBestP: the p of section 5.2 is near the p with the smallest error.
func TestPlanBestP(t *testing.T) {
	l := load{rate: 1e-3, longest: 4.096e9, shortest: 1e6, answered: 0.4, window: 10e9}
	rule := option{errors: l.errors(l.single(4096))}.worst()
	best := math.Inf(1)
	for p := 1.0; p > 1.0/8192; p /= 2 {
		best = min(best, option{errors: l.errors([]layout.Part{{Slots: 4096, P: p, Share: 1}})}.worst())
	}
	if rule > 1.5*best {
		t.Errorf("error %.3g with M/p = longest delay, %.3g is possible", rule, best)
	}
}

func TestPlanRefused(t *testing.T) {
	for _, c := range []struct {
		rate     float64
		memory   int64
		extra    map[string]string
		contains string
	}{
		{1e6, 1000, nil, "at least"},
		{0, 1 << 20, nil, "positive"},
		{1e6, 1 << 20, map[string]string{"answered": "2"}, "up to 1"},
		{1e6, 1 << 20, map[string]string{"window": "0s"}, "a time"},
		{1e6, 1 << 20, map[string]string{"cpus": "0"}, "CPUs"},
		{1e6, 1 << 20, map[string]string{"min-delay": "5s"}, "shorter"},
		{1e6, 1 << 20, map[string]string{"speed": "1"}, "known are"},
	} {
		if _, err := planFor(t, c.rate, 4*time.Second, c.memory, nil, c.extra); err == nil || !strings.Contains(err.Error(), c.contains) {
			t.Errorf("%+v: %v, want something about %q", c, err, c.contains)
		}
	}
}

// TestPlanAdvised: the stated minimum of memory suffices.
func TestPlanLeast(t *testing.T) {
	set := map[string]string{"legs": "false", "correction": "table", "resolution": "4"}
	if _, err := planFor(t, 1e6, time.Second, 16<<10, set, map[string]string{"cpus": "2"}); err != nil {
		t.Errorf("16 KiB with the smallest histogram: %v", err)
	}
}

// What a plan is made for is read to its edges.
func TestLoad(t *testing.T) {
	right := algo.PlanArgs{RatePerSecond: 1e6, MaxDelayNS: 1e9, MemoryBytes: 1 << 20}
	for _, c := range []struct {
		key, text string
		want      func(load) bool // nil: refused
	}{
		{"answered", "0.25", func(l load) bool { return l.answered == .25 }}, {"answered", "1", func(l load) bool { return l.answered == 1 }}, {"answered", "0", nil}, {"answered", "1.01", nil}, {"answered", "x", nil},
		{"window", "3s", func(l load) bool { return l.window == 3e9 && l.shortest == 1e9/4096. }}, {"window", "0s", nil}, {"window", "3", nil},
		{"min-delay", "1ms", func(l load) bool { return l.shortest == 1e6 && l.window == 10e9 }}, {"min-delay", "999999999ns", func(l load) bool { return true }}, {"min-delay", "1s", nil}, {"min-delay", "-1s", nil},
		{"cpus", "1", func(l load) bool { return l.cpus == 1 }}, {"cpus", "8192", func(l load) bool { return l.cpus == 8192 }}, {"cpus", "0", nil}, {"cpus", "8193", nil}, {"cpus", "x", nil}, {"other", "1", nil},
	} {
		a := right
		a.Extra = map[string]string{c.key: c.text}
		l, err := readLoad(a)
		if (err == nil) != (c.want != nil) || err == nil && (!c.want(l) || l.rate != 1e-3 || l.longest != 1e9 || l.memory != 1<<20) {
			t.Errorf("%s=%s: %+v, %v", c.key, c.text, l, err)
		}
	}
	for _, a := range []algo.PlanArgs{{MaxDelayNS: 1, MemoryBytes: 1}, {RatePerSecond: 1, MemoryBytes: 1}, {RatePerSecond: 1, MaxDelayNS: 1}, {RatePerSecond: math.NaN(), MaxDelayNS: 1, MemoryBytes: 1}} {
		if _, err := readLoad(a); err == nil {
			t.Errorf("%+v is taken", a)
		}
	}
	if l, err := readLoad(right); err != nil || l.answered != .4 || l.window != 10e9 || l.cpus < 1 {
		t.Errorf("%+v, %v", l, err)
	}
}

// The command in a plan sets what was planned: settings of an algorithm, in accepted numbers.
func TestPlanSettings(t *testing.T) {
	b, err := planFor(t, 1e6, 4*time.Second, 1<<20, map[string]string{"resolution": "8"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(b.Notes, "\n"); !strings.Contains(text, "--set fridge.resolution=8 ") {
		t.Errorf("no resolution of 8 in\n%s", text)
	}
}
