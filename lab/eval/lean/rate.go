package lean

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/exact"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// fewestPackets of a flow that has a rate.
const fewestPackets = 100

// mostRate is the largest share of a flow's packets that suffers: the paper's largest severity.
const mostRate = 0.1

// demandedRate is the share of the true list that is asked for in 40 kB.
const demandedRate = 0.85

// rateModel is a minute in which how much flows suffer does not depend on their sizes.
func rateModel(p *eval.Page, most float64, seed uint64) traffic.LeanOptions {
	o := model(p, severity{}, seed)
	o.Most = most
	return o
}

// rateTruth is the exact rate of every flow that has packets enough, by statistic.
type rateTruth map[string]*rateRanking

type rateRanking struct {
	rates map[string]float64
	last  float64 // of the hundredth
	want  int
}

func observeRates(o traffic.LeanOptions) (rateTruth, error) {
	m, err := traffic.NewLean(o)
	if err != nil {
		return nil, err
	}
	all := exact.NewTruth(exact.TruthOptions{Key: fiveTuple, ID: "tcp-bytes"})
	packetsOf(m, all)
	tallies, _ := all.Window()
	t := rateTruth{}
	for _, s := range statistics {
		t[s] = rankRates(tallies, s)
	}
	return t, nil
}

func rankRates(tallies map[heavy.Key]exact.Tally, statistic string) *rateRanking {
	r := &rateRanking{rates: map[string]float64{}}
	var values []float64
	for key, t := range tallies {
		if value, packets := t.Rate(statistic); packets >= fewestPackets {
			r.rates[nameOf(key)] = value
			if value > 0 {
				values = append(values, value)
			}
		}
	}
	slices.Sort(values)
	slices.Reverse(values)
	if r.want = min(topFlows, len(values)); r.want > 0 {
		r.last = values[r.want-1]
	}
	return r
}

// rateScore is what one list is worth.
type rateScore struct {
	score
	bounds, hold int     // rows with bounds of a flow that has a rate, and those that hold it
	width        float64 // mean of the bounds' width over the rate
}

// judgeRates compares a list, by whatever it is ranked, with the true rates.
func (t rateTruth) judgeRates(l report.Line, statistic string) (rateScore, error) {
	i := slices.IndexFunc(l.Report.Tables, func(t report.Table) bool { return t.Name == statistic })
	if i < 0 {
		return rateScore{}, fmt.Errorf("read report: no table %s", statistic)
	}
	table, want := l.Report.Tables[i], t[statistic]
	labels := slices.IndexFunc(table.Columns, func(c report.Column) bool { return !c.Label })
	value := table.Columns[labels]
	low := slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.Name == value.Low })
	high := slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.Name == value.High })
	s := rateScore{}
	hits := 0
	rows := table.Rows[:min(len(table.Rows), want.want)]
	for _, row := range rows {
		rate, known := want.rates[name(row[:labels])]
		if known && rate >= want.last {
			hits++
		}
		if !known || low < 0 || high < 0 {
			continue
		}
		from, _ := report.Number(row[low])
		to, _ := report.Number(row[high])
		if from <= to { // not NaN
			s.bounds++
			if rate > 0 {
				s.width += (to - from) / rate
			}
			if rate >= from && rate <= to {
				s.hold++
			}
		}
	}
	s.recall, s.precision = share(hits, want.want), share(hits, len(rows))
	s.memory, _ = number(l, "window_memory")
	return s, nil
}

// rated is a contestant of this section.
type rated struct {
	statistic, by string
	memory        int
}

func (r rated) config() bytecode.Config {
	return bytecode.Config{Algorithm: "lean", Set: map[string]string{"stat": r.statistic, "by": r.by, "memory": fmt.Sprint(r.memory), "top": fmt.Sprint(topFlows)}}
}

func playRates(ctx context.Context, o traffic.LeanOptions, list []rated) ([]rateScore, error) {
	t, err := observeRates(o)
	if err != nil {
		return nil, err
	}
	scores := make([]rateScore, 0, len(list))
	for _, batch := range bytecode.Batches(len(list)) {
		m, err := traffic.NewLean(o)
		if err != nil {
			return nil, err
		}
		var configs []bytecode.Config
		for _, c := range list[batch[0]:batch[1]] {
			configs = append(configs, c.config())
		}
		lines, err := bytecode.Replay(ctx, traffic.Frames(m), o.Seed, configs)
		if err != nil {
			return nil, err
		}
		for n, l := range lines {
			s, err := t.judgeRates(l, list[batch[0]+n].statistic)
			if err != nil {
				return nil, err
			}
			scores = append(scores, s)
		}
	}
	return scores, nil
}

// runRates plays traces on all cores.
func runRates(ctx context.Context, p *eval.Page, traces []traffic.LeanOptions, list []rated) ([]rateOutcome, error) {
	all := make([][]rateScore, len(traces))
	var mu sync.Mutex
	done := 0
	err := bytecode.Parallel(ctx, len(traces), func(ctx context.Context, i int) (err error) {
		scores, err := playRates(ctx, traces[i], list)
		mu.Lock()
		defer mu.Unlock()
		all[i] = scores
		done++
		p.Log("%d of %d traces", done, len(traces))
		return err
	})
	if err != nil {
		return nil, err
	}
	outcomes := make([]rateOutcome, len(list))
	for n := range list {
		for i := range traces {
			outcomes[n] = append(outcomes[n], all[i][n])
		}
	}
	return outcomes, nil
}

type rateOutcome []rateScore

func (o rateOutcome) scores() (list outcome) {
	for _, s := range o {
		list = append(list, s.score)
	}
	return list
}

// held is how many bounds hold the truth, of how many, and their mean width over the rate.
func (o rateOutcome) held() (hold, bounds int, width float64) {
	for _, s := range o {
		hold, bounds, width = hold+s.hold, bounds+s.bounds, width+s.width
	}
	return hold, bounds, width / float64(max(bounds, 1))
}

func (o rateOutcome) holds() string {
	hold, bounds, width := o.held()
	if bounds == 0 {
		return "-"
	}
	return fmt.Sprintf("%s of %d, %.2f wide", figure.Percent(share(hold, bounds)), bounds, width)
}

func rates(ctx context.Context, p *eval.Page) error {
	warn(p)
	var list []rated
	for _, s := range statistics {
		list = append(list, rated{s, "rate", base}, rated{s, "rate", 4 * base}, rated{s, "count", base})
	}
	runs := eval.Pick(p, 5, 2)
	var traces []traffic.LeanOptions
	for seed := range runs {
		traces = append(traces, rateModel(p, mostRate, uint64(seed+1)))
	}
	outcomes, err := runRates(ctx, p, traces, list)
	if err != nil {
		return err
	}
	p.Text("Every flow has shares of its own of segments lost, late and sent again, log-uniform from 0.01 to 10 %%, and its own round trip, whatever its size. "+
		"The truth is the exact rate in the window of flows with %d packets or more: of their packets before which something is missing, out of order, sent again; "+
		"and the mean delay of their segments. %d seeds. The last column: bounds of listed flows that hold that rate, and their width over it.", fewestPackets, runs)
	table := &figure.Table{Columns: []string{"statistic", "lean.by", "memory", "used", "mean recall", "median recall", "bounds"}}
	for n, c := range list {
		o := outcomes[n].scores()
		held := "-" // bounds of sums
		if c.by == "rate" {
			held = outcomes[n].holds()
		}
		table.Add(c.statistic, c.by, kilobytes(c.memory), bytes(o.memory()), figure.Percent(o.recall().mean), o.recall().String(), held)
		if c.by != "rate" || c.memory != base {
			continue
		}
		p.Bar(fmt.Sprintf("%s by rate: recall of the true top 100 by rate, %s in all, mean of %d seeds", c.statistic, kilobytes(c.memory), runs),
			figure.Percent(demandedRate)+" or more", figure.Percent(o.recall().mean)+" in "+bytes(o.memory()), o.recall().mean >= demandedRate && o.memory() <= base)
		hold, bounds, _ := outcomes[n].held()
		p.Bar(fmt.Sprintf("%s by rate: bounds that hold the rate, %s", c.statistic, kilobytes(c.memory)), "95 % or more",
			fmt.Sprintf("%s of %d", figure.Percent(share(hold, bounds)), bounds), share(hold, bounds) >= 0.95)
	}
	p.Table(table)
	return rateMemories(ctx, p)
}

// rateMemories draws recall against memory, for three largest rates.
func rateMemories(ctx context.Context, p *eval.Page) error {
	const runs = 1
	mosts := []float64{mostRate / 5, mostRate, 2 * mostRate}
	var list []rated
	for _, s := range statistics {
		for _, m := range sizes {
			list = append(list, rated{s, "rate", m})
		}
	}
	var traces []traffic.LeanOptions
	for _, most := range mosts {
		for seed := range runs {
			traces = append(traces, rateModel(p, most, uint64(seed+1)))
		}
	}
	outcomes, err := runRates(ctx, p, traces, list)
	if err != nil {
		return err
	}
	p.Text("### Recall by rate against memory\n\nThe largest share of a flow's packets that suffers is 2, 10 or 20 %%; one seed a point. Delays do not depend on it.")
	table := &figure.Table{Columns: []string{"memory, KB"}}
	axis := figure.Axis{Label: "memory, KB", Base: 2, Format: func(x float64) string { return fmt.Sprintf("%.0f", x) }}
	out := &figure.Figure{}
	for _, s := range statistics {
		panel := figure.Panel{Title: s + " by rate: recall of the top 100", X: axis, Y: figure.Axis{Label: "per cent", Min: 0, Max: 100, Every: 20}, Legend: figure.BottomRight}
		for _, most := range mosts {
			panel.Series = append(panel.Series, figure.Series{Name: figure.Percent(most), Style: figure.Style{Marks: true}})
			table.Columns = append(table.Columns, fmt.Sprintf("%s, %s", s, figure.Percent(most)))
		}
		out.Panels = append(out.Panels, panel)
	}
	for row, m := range sizes {
		cells := []string{fmt.Sprint(m / 1000)}
		for n := range statistics {
			for k := range mosts {
				o := outcomes[n*len(sizes)+row][k*runs : (k+1)*runs].scores()
				cells = append(cells, figure.Percent(o.recall().mean))
				series := &out.Panels[n].Series[k]
				series.Points = append(series.Points, figure.Point{X: float64(m) / 1000, Y: 100 * o.recall().median})
			}
		}
		table.Add(cells...)
	}
	p.Table(table)
	return p.Figure(out, "rate", "recall of the top 100 by rate against memory")
}
