package fridge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// The run of the section "follow": load changes 100-fold, delays 30-fold.
const (
	followWindow  = 200 * time.Millisecond // longer than the longest delay: a window then has the setting of the one before it at most
	followEntries = 1024
	followLength  = 5 // windows of a phase
	followSettled = 2 // windows of a phase before it is judged
)

var followPhases = []traffic.Phase{
	{Rate: 5_000, Max: 5 * time.Millisecond}, {Rate: 500_000, Max: 5 * time.Millisecond},
	{Rate: 500_000, Max: 150 * time.Millisecond}, {Rate: 5_000, Max: 150 * time.Millisecond},
}

// followFixed are the fixed settings that are tried: one fridge with every p that matters, and pairs.
func followFixed() []string {
	var list []string
	for k := range 11 {
		list = append(list, fmt.Sprintf("%d@1/%d", followEntries, 1<<k))
	}
	for _, pair := range [][2]int{{1, 16}, {4, 64}, {8, 256}, {1, 64}} {
		list = append(list, fmt.Sprintf("%d@1/%d,%d@1/%d", followEntries/2, pair[0], followEntries/2, pair[1]))
	}
	return list
}

// windowed notes the true delays of each window.
type windowed struct {
	*traffic.Phases
	start  int64
	known  int
	delays [][]int64
}

func (w *windowed) Next(p *packet.Packet) bool {
	if !w.Phases.Next(p) {
		return false
	}
	if w.start == 0 {
		w.start = p.Time
	}
	if all := w.Truth().Delays; len(all) > w.known {
		n := int((p.Time - w.start) / int64(followWindow))
		for len(w.delays) <= n {
			w.delays = append(w.delays, nil)
		}
		w.delays[n], w.known = append(w.delays[n], all[len(all)-1]), len(all)
	}
	return true
}

// followed is what one configuration did in one window of one seed.
type followed struct {
	ratio    float64    // count over truth
	err      float64    // its standard error, as reported
	off      [3]float64 // log2 of p50, p95, p99 over the truth
	interval bool       // one is printed for the count
	holds    bool
	setting  string
	stale    float64
}

var followQuantiles = [3]string{"p50", "p95", "p99"}

// follow is section 5.2 for traffic that changes: fridges=auto beside the best fixed setting of each phase.
func follow(ctx context.Context, p *eval.Page) error {
	n := eval.Pick(p, 30, 2)
	all := make([][][]followed, n) // [seed][configuration][window]
	err := bytecode.Parallel(ctx, n, func(ctx context.Context, i int) (err error) {
		all[i], err = followSeed(ctx, uint64(i)+1)
		return err
	})
	if err != nil {
		return err
	}
	followText(p, all)
	return nil
}

func followSeed(ctx context.Context, seed uint64) ([][]followed, error) {
	o := traffic.PhasesOptions{Seed: seed}
	for _, phase := range followPhases {
		phase.Length = followLength * followWindow
		o.Phases = append(o.Phases, phase)
	}
	m, err := traffic.NewPhases(o)
	if err != nil {
		return nil, err
	}
	w := &windowed{Phases: m}
	configs := []bytecode.Config{fridges(fmt.Sprintf("auto:%d", followEntries), "tcp-handshake", "resolution", "16", "correction", "table")}
	for _, text := range followFixed() {
		configs = append(configs, fridges(text, "tcp-handshake", "resolution", "16", "correction", "table"))
	}
	lines, err := bytecode.ReplayWith(ctx, traffic.Frames(w), session.Config{Seed: seeds(30, 12)[seed-1], Window: followWindow}, configs)
	if err != nil {
		return nil, err
	}
	out := make([][]followed, len(configs))
	for k, l := range lines {
		window := k / len(configs)
		if window >= len(followPhases)*followLength {
			break
		}
		f, err := followOf(l, w.delays[window])
		if err != nil {
			return nil, err
		}
		out[k%len(configs)] = append(out[k%len(configs)], f)
	}
	return out, nil
}

func followOf(l report.Line, truth []int64) (f followed, err error) {
	d, err := bytecode.Distribution(l, "delay_ns")
	if err != nil {
		return f, err
	}
	slices.Sort(truth)
	n := float64(len(truth))
	f = followed{ratio: d.Count / n, err: d.CountErr / n, stale: float64(l.Lost["stale"])}
	for i, name := range followQuantiles {
		f.off[i] = math.NaN()
		for _, q := range d.Quantiles {
			if q.Name == name {
				f.off[i] = math.Log2(q.Value / float64(delay.Percentile(truth, q.Q)))
			}
		}
		if math.IsNaN(f.off[i]) {
			f.off[i] = 4 // no percentile: as bad as a factor of 16
		}
	}
	for _, v := range l.Report.Values {
		switch v.Name {
		case "setting":
			f.setting = fmt.Sprint(v.Value)
		case "estimated":
			low, _ := report.Number(v.Low)
			high, _ := report.Number(v.High)
			f.interval = v.Promise == report.Interval
			f.holds = low <= n && n <= high
		}
	}
	return f, nil
}

// errorsOf a configuration over the seeds, in some windows: root mean squares.
func errorsOf(all [][][]followed, config, from, to int) (out [3]float64) {
	for _, seed := range all {
		for _, f := range seed[config][from:to] {
			for i := range out {
				out[i] += f.off[i] * f.off[i] / float64(len(all)*(to-from))
			}
		}
	}
	for i := range out {
		out[i] = math.Sqrt(out[i])
	}
	return out
}

// cubic is the geometric mean of the errors, as score of measure.go.
func cubic(e [3]float64) float64 { return math.Cbrt(e[0] * e[1] * e[2]) }

func bestFixed(all [][][]followed, from, to int) (best int) {
	best = 1
	for config := range all[0] {
		if config > 0 && cubic(errorsOf(all, config, from, to)) < cubic(errorsOf(all, best, from, to)) {
			best = config
		}
	}
	return best
}

func percents(e [3]float64) (cells []string) {
	for _, x := range e {
		cells = append(cells, figure.Percent(x))
	}
	return cells
}

func followText(p *eval.Page, all [][][]followed) {
	fixed := followFixed()
	p.Text("One run: %d requests a second with delays up to %d ms, then 100 times the load, then 30 times the delays, then a hundredth of the load; %d entries, %d windows of %d ms a phase, %d seeds of traffic and hashes. "+
		"Errors of one run at the 50th, 95th and 99th percentile, from the third window of a phase on. *Best fixed*: of %d settings (p = 1 to 1/1024, and pairs), the one with the smallest geometric mean in this phase.",
		int(followPhases[0].Rate), followPhases[0].Max.Milliseconds(), followEntries, followLength, followWindow.Milliseconds(), len(all), len(fixed))
	t := &figure.Table{Columns: []string{"phase", "setting", "p50", "p95", "p99", "geometric mean", "over the best fixed"}}
	worst := 0.0
	for phase, of := range followPhases {
		from, to := phase*followLength+followSettled, (phase+1)*followLength
		best := bestFixed(all, from, to)
		name := fmt.Sprintf("%g requests/s, up to %d ms", of.Rate, of.Max.Milliseconds())
		least := cubic(errorsOf(all, best, from, to))
		row := func(text string, config int) {
			e := errorsOf(all, config, from, to)
			t.Add(append(append([]string{name, text}, percents(e)...), figure.Percent(cubic(e)), fmt.Sprintf("%.2f", cubic(e)/least))...)
		}
		row("auto, "+commonest(all, to-1), 0)
		row("best fixed, "+fixed[best-1], best)
		row("what is best over all phases, "+fixed[overall(all)-1], overall(all))
		worst = max(worst, cubic(errorsOf(all, 0, from, to))/least)
	}
	p.Table(t)
	followChanges(p, all)
	p.Bar("error of fridges=auto over that of the best fixed setting of each phase", "1.5 at most", fmt.Sprintf("%.2f in the worst phase", worst), worst <= 1.5)
}

// commonest setting of a window.
func commonest(all [][][]followed, window int) (text string) {
	n := map[string]int{}
	for _, seed := range all {
		n[seed[0][window].setting]++
	}
	for s, k := range n {
		if k > n[text] || k == n[text] && s < text {
			text = s
		}
	}
	return text
}

// overall is the fixed setting with the smallest geometric mean over all phases.
func overall(all [][][]followed) (best int) {
	least := math.Inf(1)
	for config := range all[0] {
		sum := 0.0
		for phase := range followPhases {
			sum += math.Log(cubic(errorsOf(all, config, phase*followLength+followSettled, (phase+1)*followLength)))
		}
		if config > 0 && sum < least {
			least, best = sum, config
		}
	}
	return best
}

// followChanges tells of the windows around a change: errors, bias of the count, coverage.
func followChanges(p *eval.Page, all [][][]followed) {
	t := &figure.Table{Columns: []string{"window", "auto: p50", "p95", "p99", "best fixed of the phase: p50", "p95", "p99", "auto: sum of weights / truth", "standard error"}}
	farthest, intervals, held, stale := 0.0, 0, 0, 0.0
	for window := range followLength * len(followPhases) {
		phase := window / followLength
		best := bestFixed(all, phase*followLength+followSettled, (phase+1)*followLength)
		mean, square := 0.0, 0.0
		for _, seed := range all {
			f := seed[0][window]
			mean += f.ratio / float64(len(all))
			square += f.ratio * f.ratio / float64(len(all))
			stale += f.stale
			if f.interval {
				intervals++
				if f.holds {
					held++
				}
			}
		}
		se := math.Sqrt(max(0, square-mean*mean) / float64(len(all)-1))
		farthest = max(farthest, math.Abs(mean-1)/max(se, 1e-6))
		t.Add(append(append(append([]string{fmt.Sprintf("%d of phase %d", window%followLength+1, phase+1)}, percents(errorsOf(all, 0, window, window+1))...),
			percents(errorsOf(all, best, window, window+1))...), fmt.Sprintf("%.4f", mean), fmt.Sprintf("%.4f", se))...)
	}
	p.Text("Window by window: a change of the traffic is seen in the window in which it happens, and answered after its end. The best fixed setting of a phase had it from the start.")
	p.Table(t)
	// Of 20 means with 30 seeds each, Student's t is beyond 3.4 in one of 25 studies.
	p.Bar("bias of the count in every window, those of the changes included", "none",
		fmt.Sprintf("%.1f standard errors at most, of %d windows", farthest, followLength*len(followPhases)), farthest < 3.4)
	p.Text("%d of %d intervals of the count hold the truth (%s); %.0f responses were to requests of a setting too old to be known.", held, intervals, figure.Percent(float64(held)/float64(max(1, intervals))), stale)
}
