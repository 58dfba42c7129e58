package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	rule string // who is a culprit
	tau  time.Duration
}

// rule is who is a culprit.
func (s setting) rule() string {
	switch {
	case s.Whom != "culprits":
		return ""
	case s.Weight > 0:
		return fmt.Sprintf("%d bytes, %s, snapshots of %v", s.Weight, s.Chance, s.Interval)
	}
	return fmt.Sprintf("alpha = %s, %s, snapshots of %v", s.Alpha, s.Chance, s.Interval)
}

// compared is the rule of which the document is.
func compared() string {
	return setting{Whom: "culprits", Weight: *weight, Alpha: *alpha, Chance: *chance, Interval: *interval}.rule()
}

// trial is a result with what is asked of it often.
type trial struct {
	result
	goodput, queue, marked float64
	median, most, slowest  float64    // completion of web flows, ms: 50, 90, 99 %
	sized                  [3]float64 // ... 50 % by size
}

// sizes of web flows: those that fit an initial window of ten segments, and those that last for many round trips. They begin here.
var sizes = [...]int{1, 14_481, 100_000, math.MaxInt}

func sizeName(n int) string {
	return [...]string{"up to 14.5 kB", "to 100 kB", "from 100 kB on"}[n]
}

func trialOf(r result) trial {
	all := r.times(1, math.MaxInt)
	t := trial{result: r, goodput: r.Goodput / 1e6, queue: mean(r.Queue) / 1e3, marked: float64(r.Marked), median: quantile(all, .5), most: quantile(all, .9), slowest: quantile(all, .99)}
	for n := range t.sized {
		t.sized[n] = quantile(r.times(sizes[n], sizes[n+1]-1), .5)
	}
	return t
}

// trials are the results of a congestion control, by policy and threshold, one a pair.
type trials map[knob]map[int]trial

// trialsOf takes the result with the shortest stall where a setting was measured again.
func trialsOf(results []entry, congestion string) trials {
	t := trials{}
	for _, e := range results {
		if e.Setting.Congestion != congestion {
			continue
		}
		k := knob{e.Setting.Whom, e.Setting.rule(), e.Setting.Tau}
		if t[k] == nil {
			t[k] = map[int]trial{}
		}
		if before, ok := t[k][e.Setting.Pair]; !ok || e.Result.Stall < before.Stall {
			t[k][e.Setting.Pair] = trialOf(e.Result)
		}
	}
	return t
}

// pairs of which both policies were measured.
func (t trials) pairs() (list []int) {
	both := map[int][2]bool{}
	for k, byPair := range t {
		for pair := range byPair {
			b := both[pair]
			b[0], b[1] = b[0] || k.whom == "culprits" && k.rule == compared(), b[1] || k.whom == "everyone"
			both[pair] = b
		}
	}
	for pair, b := range both {
		if b[0] && b[1] {
			list = append(list, pair)
		}
	}
	slices.Sort(list)
	return list
}

func (t trials) knobs(whom, rule string) (list []knob) {
	for k := range t {
		if k.whom == whom && k.rule == rule {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b knob) int { return int(a.tau - b.tau) })
	return list
}

// rules of culprits: the one that is compared first.
func (t trials) rules() (list []string) {
	for k := range t {
		if k.whom == "culprits" && k.rule != compared() && !slices.Contains(list, k.rule) {
			list = append(list, k.rule)
		}
	}
	slices.Sort(list)
	return append([]string{compared()}, list...)
}

// quantity is what a figure is of.
type quantity func(trial) float64

func goodput(t trial) float64 { return t.goodput }
func waited(t trial) float64  { return t.median }
func most(t trial) float64    { return t.most }
func slowest(t trial) float64 { return t.slowest }
func inQueue(t trial) float64 { return t.queue }
func marks(t trial) float64   { return t.marked }
func sized(n int) quantity    { return func(t trial) float64 { return t.sized[n] } }

// of one quantity, the median over these pairs (which may repeat).
func (t trials) of(k knob, pairs []int, q quantity) float64 {
	var list []float64
	for _, pair := range pairs {
		if r, ok := t[k][pair]; ok {
			list = append(list, q(r))
		}
	}
	return median(list)
}

func (t trials) curve(whom, rule string, pairs []int, q quantity) (c curve) {
	var weights []float64
	for _, k := range t.knobs(whom, rule) {
		c, weights = append(c, figure.Point{X: t.of(k, pairs, goodput), Y: t.of(k, pairs, q)}), append(weights, 1)
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
func (t trials) ratio(pairs []int, q quantity) (value, low, high float64) {
	a, b := t.curve("culprits", compared(), pairs, q), t.curve("everyone", "", pairs, q)
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
func (t trials) interval(q quantity) (low, high float64) {
	const draws = 2000
	pairs, random := t.pairs(), rand.New(rand.NewPCG(3, 3))
	var list []float64
	for range draws {
		again := make([]int, len(pairs))
		for n := range again {
			again[n] = pairs[random.IntN(len(pairs))]
		}
		if r, _, _ := t.ratio(again, q); !math.IsNaN(r) {
			list = append(list, r)
		}
	}
	slices.Sort(list)
	return quantile(list, 0.025), quantile(list, 0.975)
}

// compare is a cell: the ratio with its interval.
func (t trials) compare(q quantity) string {
	value, _, _ := t.ratio(t.pairs(), q)
	low, high := t.interval(q)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", value, low, high)
}

const introduction = `# conquest: the loop closed

Figures 5.11 and 5.12 of Chen, "Designing Compact Data Structures for Network Measurement and Control", section 5.5.2, with real TCP between network namespaces: %d bulk flows
that never end and web flows that come at random (a Poisson process, %.0f %% of the link; sizes log-normal with a median of %.2f kB and a mean of %.1f kB before they are cut at 1 MiB), through
an HTB class of %.0f Mb/s with a FIFO of %d packets (an aggregate counts as one) and a round trip of %v without it. ` + "`xdpmon attach … --set conquest.action=ecn`" + ` marks the next packets, for %v, of *culprits*: flows
that had %s while a packet of theirs waited tau or more (with *linear* the more of their packets, the more they had beyond that); or of *everyone* while the delay is tau or more. Small flows are the web flows; their
time is from connect() to the last byte at the other end.

Each policy has its own sweep of tau. What is compared is the completion time at the same goodput of the bulk flows, by interpolation between the thresholds
(medians over pairs of each run's quantile; the web flows of a pair are the same for all settings), as the geometric mean over all goodputs that both sweeps have. In brackets: 95 %%, pairs drawn again 2,000 times. Runs in which this process was
held up for more than %d ms are measured again where the time is there, twice at most, and the best one counts.

`

func document(results []entry) error {
	if *out == "" {
		return nil
	}
	var b strings.Builder
	who := fmt.Sprintf("%d bytes or more in the queue (conquest.weight)", *weight)
	if *weight == 0 {
		who = *alpha + " of the queue or more (conquest.alpha)"
	}
	fmt.Fprintf(&b, introduction, bulk, 100*webLoad, webMedian/1e3, webMean/1e3, rate/1e6, buffer, roundTrip, *hold, who, longestStall)
	p := page{
		summary: &figure.Table{Columns: []string{"culprits / everyone", "pairs", "goodputs compared, Mb/s", "web median", "web 90 %", "web 99 %", sizeName(0), sizeName(1), sizeName(2)}},
		sweep:   &figure.Table{Columns: []string{"congestion control", "marks", "tau", "pairs", "bulk, Mb/s", "web median, ms", "web 90 %, ms", "web 99 %, ms", "in queue, kB", "packets marked"}},
		marked:  &figure.Table{Columns: []string{"congestion control", "marks", "tau", "flows", "number", "of them with a mark", "of their segments", "median, ms", "99 %, ms"}},
		lost:    &figure.Table{Columns: []string{"congestion control", "runs", "dropped by the queue", "segments sent again, web", "bulk", "time-outs, web", "bulk"}},
	}
	for _, c := range []string{"cubic", dctcp.Name, "reno", "bbr"} {
		p.add(c, trialsOf(results, c))
	}
	fmt.Fprintf(&b, "%s\nThe last three columns are the median of flows of that size. The dissertation has 6.9 %% less for the median with New Reno and 7.3 %% with cubic, and its 99 %% deteriorate, \"since the largest workload flows are also penalized\".\n\n", p.summary)
	if len(p.short) > 0 {
		fmt.Fprintf(&b, "Of %d pairs that were wanted there are %s. %d of %d runs that count were held up for more than %d ms and have not been measured again without that.\n\n", *pairs, strings.Join(p.short, ", "), p.stalled, p.runs, longestStall)
	}
	dir, base := filepath.Dir(*out), strings.TrimSuffix(filepath.Base(*out), ".md")
	for _, f := range []struct {
		panels            []figure.Panel
		name, alternative string
	}{{p.panels, base + "-times", "median time of web flows over the goodput of bulk flows"}, {p.queues, base + "-queue", "the queue over time, by policy"}} {
		picture := figure.Figure{Panels: f.panels}
		text, err := picture.Save(dir, f.name+".svg", f.alternative)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s\n\n", text)
	}
	fmt.Fprintf(&b, "The queue over the first two seconds of the first pair, at the thresholds of each policy whose goodput is nearest to %.0f %% of the link (figure 5.12).\n\n%s\n", 100*shown/rate*1e6, p.sweep)
	fmt.Fprintf(&b, "## Who is marked\n\nAs each sender's kernel counts (TCP_INFO), over all pairs.\n\n%s\n%s\n", p.marked, p.lost)
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(&b, "*Measured %s. %s; load %s at the end.*\n", measured(results), eval.Provenance(context.Background(), command()), strings.Join(strings.Fields(string(load))[:3], ", "))
	return os.WriteFile(*out, []byte(b.String()), 0o644)
}

// measured is when, and by which programs.
func measured(results []entry) string {
	var programs []string
	from, to := time.Now(), time.Time{}
	for _, e := range results {
		name, _, _ := strings.Cut(e.Program, ",")
		if !slices.Contains(programs, name) {
			programs = append(programs, name)
		}
		if e.At.Before(from) {
			from = e.At
		}
		if e.At.After(to) {
			to = e.At
		}
	}
	return fmt.Sprintf("%s to %s by %s", from.Format("2006-01-02 15:04"), to.Format("15:04 UTC"), strings.Join(programs, " and "))
}

// page is what the document shows of each congestion control.
type page struct {
	summary, sweep, marked, lost *figure.Table
	panels, queues               []figure.Panel
	short                        []string // pairs of each congestion control
	runs, stalled                int      // that count, and of them those that the machine held up
}

func (p *page) add(name string, t trials) {
	pairs := t.pairs()
	if len(pairs) < leastPairs {
		return
	}
	_, from, to := t.ratio(pairs, waited)
	row := []string{name, fmt.Sprint(len(pairs)), fmt.Sprintf("%.1f to %.1f", from, to)}
	for _, q := range []quantity{waited, most, slowest, sized(0), sized(1), sized(2)} {
		row = append(row, t.compare(q))
	}
	p.summary.Add(row...)
	p.short = append(p.short, fmt.Sprintf("%d of %s", len(pairs), name))
	panel := figure.Panel{Title: name, X: figure.Axis{Label: "goodput of bulk flows (Mb/s)"}, Y: figure.Axis{Label: "median time of web flows (ms)"}}
	for _, rule := range t.rules() {
		p.rows(name, t, "culprits", rule, &panel)
	}
	p.rows(name, t, "everyone", "", &panel)
	p.rows(name, t, "", "", &panel)
	if len(p.panels) == 0 {
		panel.Legend = figure.TopLeft
	}
	p.panels, p.queues = append(p.panels, panel), append(p.queues, t.queue(name, len(p.queues) == 0))
	p.losses(name, t)
}

// rows of a policy, and its line.
func (p *page) rows(name string, t trials, whom, rule string, panel *figure.Panel) {
	line := figure.Series{Name: whom}
	for _, k := range t.knobs(whom, rule) {
		pairs := slices.Sorted(maps.Keys(t[k]))
		x, y := t.of(k, pairs, goodput), t.of(k, pairs, waited)
		line.Points = append(line.Points, figure.Point{X: x, Y: y})
		policy, tau := whom, fmt.Sprint(k.tau)
		switch {
		case whom == "":
			policy, tau = "none", "-"
		case rule != "":
			policy += ": " + rule
		}
		p.sweep.Add(name, policy, tau, fmt.Sprint(len(pairs)), fmt.Sprintf("%.1f", x), fmt.Sprintf("%.2f", y), fmt.Sprintf("%.1f", t.of(k, pairs, most)), fmt.Sprintf("%.0f", t.of(k, pairs, slowest)),
			fmt.Sprintf("%.1f", t.of(k, pairs, inQueue)), fmt.Sprintf("%.0f", t.of(k, pairs, marks)))
		if whom == "" {
			continue
		}
		var long []flow
		for _, r := range t[k] {
			long = append(long, r.Bulk...)
		}
		p.marked.Add(name, policy, tau, "bulk", fmt.Sprint(len(long)), "", fmt.Sprintf("%.3f", total(long).share()), "", "")
		for n := range len(sizes) - 1 {
			p.marked.Add(append([]string{"", "", "", sizeName(n)}, markedBySize(t[k], n)...)...)
		}
	}
	if whom != "" && (rule == "" || rule == compared()) {
		panel.Series = append(panel.Series, line)
	}
}

// markedBySize is what became of web flows of a size: their number, how many were marked, how many of their segments, and how long they took.
func markedBySize(byPair map[int]trial, n int) []string {
	var flows []flow
	var times []float64
	with := 0
	for _, r := range byPair {
		for _, f := range r.Web {
			if f.Time > 0 && f.Size >= sizes[n] && f.Size < sizes[n+1] {
				flows, times = append(flows, f), append(times, f.Time)
				if f.Marked > 0 {
					with++
				}
			}
		}
	}
	slices.Sort(times)
	return []string{fmt.Sprint(len(flows)), fmt.Sprintf("%.2f", float64(with)/float64(max(1, len(flows)))), fmt.Sprintf("%.3f", total(flows).share()),
		fmt.Sprintf("%.1f", quantile(times, .5)), fmt.Sprintf("%.0f", quantile(times, .99))}
}

// losses are of all runs with marks.
func (p *page) losses(name string, t trials) {
	var web, long []flow
	runs, dropped := 0, uint64(0)
	for k, byPair := range t {
		if k.whom == "" {
			continue
		}
		for _, r := range byPair {
			runs, dropped = runs+1, dropped+r.Dropped
			if r.Stall > longestStall {
				p.stalled++
			}
			web, long = append(web, r.Web...), append(long, r.Bulk...)
		}
	}
	p.runs += runs
	w, l := total(web), total(long)
	p.lost.Add(name, fmt.Sprint(runs), fmt.Sprint(dropped), fmt.Sprintf("%d of %d", w.Again, w.Segments), fmt.Sprintf("%d of %d", l.Again, l.Segments), fmt.Sprint(w.Timeouts), fmt.Sprint(l.Timeouts))
}

// shown is the goodput, Mb/s, at which queues are drawn.
const shown = 68.

// queue draws the queue of the first pair.
func (t trials) queue(name string, legend bool) figure.Panel {
	panel := figure.Panel{Title: name, X: figure.Axis{Label: "time (s)"}, Y: figure.Axis{Label: "in the queue (kB)"}}
	for _, whom := range []string{"everyone", "culprits"} {
		rule := ""
		if whom == "culprits" {
			rule = compared()
		}
		knobs := t.knobs(whom, rule)
		if len(knobs) == 0 {
			continue
		}
		off := func(k knob) float64 { return math.Abs(t.of(k, t.pairs(), goodput) - shown) }
		best := slices.MinFunc(knobs, func(a, b knob) int { return cmp.Compare(off(a), off(b)) })
		line := figure.Series{Name: fmt.Sprintf("%s, tau = %v", whom, best.tau)}
		for n, bytes := range t[best][t.pairs()[0]].Queue {
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
