package lean

import (
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// score of one list.
type score struct {
	recall     float64 // share of the true list that was named
	precision  float64 // share of what was named that is right
	candidates float64 // flows that the data plane reported
	memory     float64 // bytes: tables, sketch and filter of one bank
}

// judge compares a report with the truth. The list is the report's table: only what the data plane has named can be in it.
func (t *truth) judge(l report.Line, statistic string) (score, error) {
	i := slices.IndexFunc(l.Report.Tables, func(t report.Table) bool { return t.Name == statistic })
	if i < 0 {
		return score{}, fmt.Errorf("read report: no table %s", statistic)
	}
	table, want := l.Report.Tables[i], t.of[statistic]
	labels := 0
	for _, c := range table.Columns {
		if c.Label {
			labels++
		}
	}
	rows := table.Rows[:min(len(table.Rows), want.want)]
	hits := 0
	for _, row := range rows {
		if want.top[name(row[:labels])] {
			hits++
		}
	}
	s := score{recall: share(hits, want.want), precision: share(hits, len(rows))}
	s.candidates, _ = number(l, statistic+"_candidates")
	s.memory, _ = number(l, "window_memory")
	return s, nil
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// number is a value of a report.
func number(l report.Line, name string) (float64, bool) {
	for _, v := range l.Report.Values {
		if v.Name == name {
			return report.Number(v.Value)
		}
	}
	return 0, false
}

// spread is what runs with different seeds result in.
type spread struct{ mean, median, low, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	s := spread{low: v[0], high: v[len(v)-1], median: (v[(len(v)-1)/2] + v[len(v)/2]) / 2}
	for _, x := range v {
		s.mean += x / float64(len(v))
	}
	return s
}

// String is the median, and where the runs lie.
func (s spread) String() string {
	return fmt.Sprintf("%s (%.0f to %.0f)", figure.Percent(s.median), 100*s.low, 100*s.high)
}

// outcome of one configuration over seeds.
type outcome []score

func (o outcome) recall() spread    { return o.spread(func(s score) float64 { return s.recall }) }
func (o outcome) precision() spread { return o.spread(func(s score) float64 { return s.precision }) }
func (o outcome) candidates() float64 {
	return o.spread(func(s score) float64 { return s.candidates }).mean
}
func (o outcome) memory() float64 { return o.spread(func(s score) float64 { return s.memory }).high }

func (o outcome) spread(of func(score) float64) spread {
	values := make([]float64, len(o))
	for i, s := range o {
		values[i] = of(s)
	}
	return spreadOf(values)
}
