package fridge

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/fridge/tune"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// scripted changes the setting after every window, whatever it saw.
type scripted struct {
	*tune.Tuner
	classes [][layout.Most]int
	window  int
}

func (s *scripted) Next(w tune.Window) bool {
	s.Change(s.classes[s.window%len(s.classes)], w.End)
	s.window++
	return true
}

// forced is a configuration whose instances have such a tuner.
type forced struct {
	*config
	classes [][layout.Most]int
}

func (f forced) New(env algo.Env) (algo.Instance, error) {
	i, err := f.config.New(env)
	if err == nil {
		i.(*instance).tuner = &scripted{Tuner: tune.New(f.slots), classes: f.classes}
	}
	return i, err
}

func forcing(classes ...[layout.Most]int) *algo.Descriptor {
	d := descriptor()
	d.Config = algo.Typed(func(v algo.Values, s algo.Setup) (forced, error) {
		c, err := newConfig(v, s)
		return forced{c, classes}, err
	})
	return d
}

// jumps are settings as far apart as they can be: up and down by 64, more and fewer fridges.
var jumps = [][layout.Most]int{{6, 6, 6, 6}, {0, 0, 0, 0}, {0, 2, 4, 6}, {5, 5, 0, 0}, {3, 3, 3, 3}, {0, 0, 6, 6}}

// TestAutoUnbiased: the setting changes after every window, by up to a factor of 64, and half of all responses are to requests of the window before. Each window counts as many
// as were answered, by each correction, and with the hashes of a switch.
func TestAutoUnbiased(t *testing.T) {
	const seeds, windows, window = 2, 8, 20 * time.Millisecond
	for _, set := range []map[string]string{
		{"fridges": "auto:8192"},
		{"fridges": "auto:8192", "legs": "false", "correction": "exact", "resolution": "4"},
	} {
		sum, err2, n := map[int]float64{}, map[int]float64{}, 0
		squares, intervals, held := 0.0, 0, 0
		for seed := range uint64(seeds) {
			m, err := traffic.NewPhases(traffic.PhasesOptions{Answered: 1, Seed: seed + 1,
				Phases: []traffic.Phase{{Length: windows * window, Rate: 200_000, Max: window * 3 / 2, Octaves: 3}}})
			if err != nil {
				t.Fatal(err)
			}
			lines := trial{set: set, model: m, seed: seed + 1, window: window, truth: true, crc: seed == 0, descriptor: forcing(jumps...)}.run(t)
			for w, l := range lines[:windows] {
				d, truth := find(t, l.Report, "delay_ns"), find(t, *l.Truth, "delay_ns")
				sum[w] += d.Count / truth.Count / seeds
				err2[w] += d.CountErr * d.CountErr / truth.Count / truth.Count / seeds / seeds
				squares += math.Pow((d.Count-truth.Count)/d.CountErr, 2)
				n++
				if l.Lost["stale"] > 0 {
					t.Errorf("%d stale responses", l.Lost["stale"])
				}
				for _, v := range l.Report.Values {
					if v.Name == "estimated" && v.Promise == report.Interval {
						low, _ := report.Number(v.Low)
						high, _ := report.Number(v.High)
						intervals++
						if low <= truth.Count && truth.Count <= high {
							held++
						}
					}
				}
			}
		}
		for w := range windows {
			t.Logf("%v, window %2d: estimate/truth %.4f, standard error %.4f", set, w, sum[w], math.Sqrt(err2[w]))
			if math.Abs(sum[w]-1) > 3.5*math.Sqrt(err2[w])+0.003 {
				t.Errorf("%v, window %d: estimate is %.4f of the truth, standard error %.4f", set, w, sum[w], math.Sqrt(err2[w]))
			}
		}
		t.Logf("squared error over its estimate: %.2f; %d of %d intervals hold the truth", squares/float64(n), held, intervals)
		if s := squares / float64(n); s > 1.6 || s < 0.5 {
			t.Errorf("squared errors are %.2f of what reports state", s)
		}
		if intervals < n/2 || float64(held) < 0.9*float64(intervals) {
			t.Errorf("%d of %d intervals hold the truth", held, intervals)
		}
	}
}

// TestAutoRepeated: requests that are sent again count once, also where the setting changes between two of their occurrences. Without the withdrawal
// of records the estimate is too large after every fall of p.
func TestAutoRepeated(t *testing.T) {
	const seeds = 2
	for _, mode := range []string{"restart", "keep"} {
		mean := 0.0
		for seed := range uint64(seeds) {
			m := traffic.NewInsistent(traffic.InsistentOptions{Requests: 20_000, Gap: 10 * time.Microsecond, Delay: 4 * time.Millisecond, Share: 1, Times: 3,
				Pause: 15 * time.Millisecond, Seed: seed + 1})
			lines := trial{set: map[string]string{"fridges": "auto:16384", "legs": "false", "retransmit": mode}, model: m, seed: seed + 1, window: 20 * time.Millisecond, truth: true,
				descriptor: forcing([layout.Most]int{0, 0, 0, 0}, [layout.Most]int{5, 5, 5, 5})}.run(t)
			count, truth := 0.0, 0.0
			for _, l := range lines {
				count += find(t, l.Report, "delay_ns").Count
				truth += find(t, *l.Truth, "delay_ns").Count
			}
			mean += count / truth / seeds
		}
		t.Logf("%s: estimate/truth %.4f", mode, mean)
		if math.Abs(mean-1) > 0.03 {
			t.Errorf("%s: estimate is %.4f of the truth", mode, mean)
		}
	}
}

// TestAutoFollows: load grows 100-fold and delays 30-fold; the setting follows within two windows each.
func TestAutoFollows(t *testing.T) {
	const window = 100 * time.Millisecond
	m, err := traffic.NewPhases(traffic.PhasesOptions{Seed: 3, Phases: []traffic.Phase{
		{Length: 4 * window, Rate: 5_000, Max: 5 * time.Millisecond}, {Length: 4 * window, Rate: 500_000, Max: 5 * time.Millisecond},
		{Length: 5 * window, Rate: 500_000, Max: 150 * time.Millisecond}, {Length: 5 * window, Rate: 5_000, Max: 5 * time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	lines := trial{set: map[string]string{"fridges": "auto:1024", "samples": "8"}, model: m, seed: 3, window: window, truth: true}.run(t)
	settings := make([]string, len(lines))
	for n, l := range lines {
		for _, v := range l.Report.Values {
			if v.Name == "setting" {
				settings[n] = v.Value.(string)
			}
		}
		d, truth := find(t, l.Report, "delay_ns"), find(t, *l.Truth, "delay_ns")
		t.Logf("window %2d: %-40s p95 %8.3f ms, truth %8.3f ms, count %.0f of %.0f, %v", n, settings[n], quantile(d, "p95").Value/1e6, quantile(truth, "p95").Value/1e6, d.Count, truth.Count, l.Lost)
	}
	for _, n := range []int{3, 6, 7, 11, 12, 16} {
		d, truth := find(t, lines[n].Report, "delay_ns"), find(t, *lines[n].Truth, "delay_ns")
		for _, q := range []string{"p50", "p95"} {
			if off := math.Abs(math.Log2(quantile(d, q).Value / quantile(truth, q).Value)); off > 0.35 {
				t.Errorf("window %d, %s: %s is off by %.2f octaves", n, settings[n], q, off)
			}
		}
	}
	if settings[3] == settings[7] || settings[7] == settings[12] || settings[12] == settings[17] {
		t.Errorf("the setting does not follow: %v", settings)
	}
}

func TestAutoRefused(t *testing.T) {
	for _, c := range []struct {
		set      map[string]string
		contains string
	}{
		{map[string]string{"fridges": "auto:1000"}, "power of two"}, {map[string]string{"fridges": "auto:32"}, "power of two"}, {map[string]string{"fridges": "auto1024"}, "power of two"},
		{map[string]string{"fridges": "auto", "counter": "inferred"}, "counter=recorded"}, {map[string]string{"fridges": "auto:1048576", "shards": "1"}, "more shards"},
	} {
		if _, err := newConfig(values(t, c.set), algo.Setup{}); err == nil || !strings.Contains(err.Error(), c.contains) {
			t.Errorf("%v: %v, want something about %q", c.set, err, c.contains)
		}
	}
	for text, refused := range map[string]bool{"auto": true, "1024@1": false} {
		c, err := newConfig(values(t, map[string]string{"fridges": text}), algo.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CheckMerge(); (err != nil) != refused {
			t.Errorf("%s on many hosts: %v", text, err)
		}
	}
}
