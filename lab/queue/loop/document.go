package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/lab/queue/dctcp"
)

func mean(list []float64) float64 {
	sum := 0.
	for _, x := range list {
		sum += x
	}
	return sum / float64(max(1, len(list)))
}

// quantile of a sorted list.
func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	return list[min(len(list)-1, int(q*float64(len(list))))]
}

func median(list []float64) float64 { return quantile(slices.Sorted(slices.Values(list)), 0.5) }

// curve of a policy: goodput and the median completion time of web flows, for each threshold the median over pairs. A lower threshold never
// has more goodput: where noise decides that, neighbours are put together.
type curve []figure.Point

// knob is one threshold of a policy.
type knob struct {
	whom string
	tau  time.Duration
}

// trials are the results of a congestion control, by policy and threshold, one a pair.
type trials map[knob]map[int]result

func trialsOf(results []entry, congestion string) trials {
	t := trials{}
	for _, e := range results {
		if e.Setting.Congestion != congestion {
			continue
		}
		k := knob{e.Setting.Whom, e.Setting.Tau}
		if t[k] == nil {
			t[k] = map[int]result{}
		}
		t[k][e.Setting.Pair] = e.Result
	}
	return t
}

func (t trials) pairs() (list []int) {
	for _, byPair := range t {
		for pair := range byPair {
			if !slices.Contains(list, pair) {
				list = append(list, pair)
			}
		}
	}
	slices.Sort(list)
	return list
}

func (t trials) taus(whom string) (list []time.Duration) {
	for k := range t {
		if k.whom == whom {
			list = append(list, k.tau)
		}
	}
	slices.Sort(list)
	return list
}

// of one quantity, over these pairs (which may repeat).
func (t trials) of(k knob, pairs []int, quantity func(result) float64) float64 {
	var list []float64
	for _, pair := range pairs {
		if r, ok := t[k][pair]; ok {
			list = append(list, quantity(r))
		}
	}
	return median(list)
}

func goodput(r result) float64  { return r.Goodput / 1e6 }
func waited(r result) float64   { return quantile(r.times(0, math.MaxInt), 0.5) }
func inQueue(r result) float64  { return mean(r.Queue) / 1e3 }
func slowest(r result) float64  { return quantile(r.times(0, math.MaxInt), 0.99) }
func markings(r result) float64 { return float64(r.Marked) }

func (t trials) curve(whom string, pairs []int) (c curve) {
	var weights []float64
	for _, tau := range t.taus(whom) {
		k := knob{whom, tau}
		c, weights = append(c, figure.Point{X: t.of(k, pairs, goodput), Y: t.of(k, pairs, waited)}), append(weights, 1)
		for n := len(c) - 1; n > 0 && c[n].X <= c[n-1].X; n-- { // pool adjacent violators
			w, v := weights[n-1], weights[n]
			c[n-1] = figure.Point{X: (c[n-1].X*w + c[n].X*v) / (w + v), Y: (c[n-1].Y*w + c[n].Y*v) / (w + v)}
			c, weights = c[:n], append(weights[:n-1], w+v)
		}
	}
	return c
}

// at interpolates; outside of the curve there is nothing.
func (c curve) at(x float64) float64 {
	for n := 1; n < len(c); n++ {
		if x >= c[n-1].X && x <= c[n].X {
			part := (x - c[n-1].X) / (c[n].X - c[n-1].X)
			return c[n-1].Y + part*(c[n].Y-c[n-1].Y)
		}
	}
	return math.NaN()
}

const leastPairs = 3 // of a congestion control that is reported

const levels = 9 // goodputs at which curves are compared

// ratio is how long web flows take with marks on culprits, in parts of what they take with marks on everybody, at the same goodput of the bulk flows: the geometric
// mean over goodputs that both curves have.
func (t trials) ratio(pairs []int) (value, low, high float64) {
	a, b := t.curve("culprits", pairs), t.curve("everyone", pairs)
	if len(a) < 2 || len(b) < 2 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	low, high = max(a[0].X, b[0].X), min(a[len(a)-1].X, b[len(b)-1].X)
	var logs []float64
	for n := range levels {
		x := low + (high-low)*float64(n)/(levels-1)
		if r := a.at(x) / b.at(x); r > 0 && low < high {
			logs = append(logs, math.Log(r))
		}
	}
	if len(logs) == 0 {
		return math.NaN(), low, high
	}
	return math.Exp(mean(logs)), low, high
}

// interval of the ratio: pairs are drawn again, with both policies.
func (t trials) interval() (low, high float64) {
	const draws = 2000
	pairs, random := t.pairs(), rand.New(rand.NewPCG(3, 3))
	var list []float64
	for range draws {
		again := make([]int, len(pairs))
		for n := range again {
			again[n] = pairs[random.IntN(len(pairs))]
		}
		if r, _, _ := t.ratio(again); !math.IsNaN(r) {
			list = append(list, r)
		}
	}
	slices.Sort(list)
	return quantile(list, 0.025), quantile(list, 0.975)
}

const introduction = `# conquest: the loop closed

Figures 5.11 and 5.12 of Chen, "Designing Compact Data Structures for Network Measurement and Control", section 5.5.2, with real TCP between network namespaces: %d bulk flows
that never end and web flows that come at random (a Poisson process, %.0f %% of the link; sizes log-normal with a median of %.2f kB and a mean of %.1f kB before they are cut at 1 MiB), through
an HTB class of %.0f Mb/s with a FIFO of %d packets (an aggregate counts as one) and a round trip of %v without it. ` + "`xdpmon attach … --set conquest.action=ecn`" + ` marks the next packets, for %v, of *culprits* (flows with more
than alpha = %s of the queue, behind a delay of tau), or of *everyone* while the delay is tau or more. Small flows are the web flows; their time is from connect() to the last byte at the other end.

Each policy has its own sweep of tau. What is compared is the median completion time at the same goodput of the bulk flows, by interpolation between the thresholds
(medians over pairs; the web flows of a pair are the same for all settings), as the geometric mean over all goodputs that both sweeps have. Intervals: 95 %%, pairs drawn again 2,000 times.

`

func document(results []entry) error {
	if *out == "" {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, introduction, bulk, 100*webLoad, webMedian/1e3, webMean/1e3, rate/1e6, buffer, roundTrip, *hold, *alpha)
	var missing []string
	summary := &figure.Table{Columns: []string{"congestion control", "pairs", "culprits / everyone, median time", "95 %", "goodputs compared, Mb/s"}}
	var panels, queues []figure.Panel
	detail := &figure.Table{Columns: []string{"congestion control", "marks", "tau", "bulk, Mb/s", "web median, ms", "web 99 %, ms", "in queue, kB", "marked"}}
	for _, c := range []string{"cubic", dctcp.Name, "reno", "bbr"} {
		t := trialsOf(results, c)
		pairs := t.pairs()
		if len(pairs) < leastPairs {
			missing = append(missing, c)
			continue
		}
		value, from, to := t.ratio(pairs)
		low, high := t.interval()
		summary.Add(c, fmt.Sprint(len(pairs)), fmt.Sprintf("%.2f", value), fmt.Sprintf("%.2f to %.2f", low, high), fmt.Sprintf("%.0f to %.0f", from, to))
		panel := figure.Panel{Title: c, X: figure.Axis{Label: "goodput of bulk flows (Mb/s)"}, Y: figure.Axis{Label: "median time of web flows (ms)"}}
		for _, whom := range []string{"culprits", "everyone", ""} {
			line := figure.Series{Name: whom}
			for _, tau := range t.taus(whom) {
				k := knob{whom, tau}
				x, y := t.of(k, pairs, goodput), t.of(k, pairs, waited)
				line.Points = append(line.Points, figure.Point{X: x, Y: y})
				name, threshold := whom, fmt.Sprint(tau)
				if whom == "" {
					name, threshold = "none", "-"
				}
				detail.Add(c, name, threshold, fmt.Sprintf("%.1f", x), fmt.Sprintf("%.2f", y), fmt.Sprintf("%.0f", t.of(k, pairs, slowest)), fmt.Sprintf("%.1f", t.of(k, pairs, inQueue)),
					fmt.Sprintf("%.0f", t.of(k, pairs, markings)))
			}
			if whom != "" {
				panel.Series = append(panel.Series, line)
			}
		}
		if len(panels) == 0 {
			panel.Legend = figure.TopLeft
		}
		panels, queues = append(panels, panel), append(queues, t.queue(c, len(queues) == 0))
	}
	fmt.Fprintf(&b, "%s\n", summary)
	if len(missing) > 0 && *congestions == everything {
		fmt.Fprintf(&b, "Not measured yet (fewer than %d pairs): %s.\n\n", leastPairs, strings.Join(missing, ", "))
	}
	dir, base := filepath.Dir(*out), strings.TrimSuffix(filepath.Base(*out), ".md")
	for _, f := range []struct {
		panels            []figure.Panel
		name, alternative string
	}{{panels, base + "-times", "median time of web flows over the goodput of bulk flows"}, {queues, base + "-queue", "the queue over time, by policy"}} {
		picture := figure.Figure{Panels: f.panels}
		text, err := picture.Save(dir, f.name+".svg", f.alternative)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s\n\n", text)
	}
	fmt.Fprintf(&b, "The queue over the first two seconds of the first pair, at the thresholds of each policy whose goodput is nearest to %.0f %% of the link (figure 5.12).\n\n%s\n", 100*shown/rate*1e6, detail)
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(&b, "*%s; load %s at the end.*\n", eval.Provenance(context.Background(), command()), strings.Join(strings.Fields(string(load))[:3], ", "))
	return os.WriteFile(*out, []byte(b.String()), 0o644)
}

// shown is the goodput, Mb/s, at which queues are drawn.
const shown = 68.

// queue draws the queue of the first pair.
func (t trials) queue(name string, legend bool) figure.Panel {
	panel := figure.Panel{Title: name, X: figure.Axis{Label: "time (s)"}, Y: figure.Axis{Label: "in the queue (kB)"}}
	for _, whom := range []string{"everyone", "culprits"} {
		taus := t.taus(whom)
		if len(taus) == 0 {
			continue
		}
		off := func(tau time.Duration) float64 { return math.Abs(t.of(knob{whom, tau}, t.pairs(), goodput) - shown) }
		best := slices.MinFunc(taus, func(a, b time.Duration) int {
			if off(a) < off(b) {
				return -1
			}
			return 1
		})
		line := figure.Series{Name: fmt.Sprintf("%s, tau = %v", whom, best)}
		for n, bytes := range t[knob{whom, best}][t.pairs()[0]].Queue {
			if at := float64(n) * queueStep.Seconds(); at < 2 {
				line.Points = append(line.Points, figure.Point{X: at, Y: bytes / 1e3})
			}
		}
		panel.Series = append(panel.Series, line)
	}
	if legend {
		panel.Legend = figure.TopRight
	}
	return panel
}
