package fridge

import (
	"fmt"
	"math"
	"strings"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

func (s *memoryStudy) write(p *eval.Page) error {
	p.Text("ISP model, %d answered requests, %d hash seeds. The settings (p; p1 and p2; T) were searched on a grid with two other seeds at "+
		"every second size, for the smallest product of the errors of one run at the 50th, 95th and 99th percentile.",
		len(s.result.truth), len(s.outcome(0, 0).runs))
	if err := p.Figure(s.figure(oneWhole, oneFridge, twoFridges), "memory-fridges",
		"figure 4: error against memory, one fridge and two"); err != nil {
		return err
	}
	if err := p.Figure(s.figure(oneFridge, twoFridges, oneStage, fourStages, advised, overwriting), "memory",
		"figure 5: error against memory, fridges and naive arrays"); err != nil {
		return err
	}
	p.Text("Errors of one run at the 50th / 95th / 99th percentile, and the settings:")
	p.Table(s.table(s.single, "%s"))
	p.Text("Combined errors, as the paper draws them:")
	p.Table(s.table(s.combined, ""))
	s.savings(p)
	return nil
}

func (s *memoryStudy) figure(families ...int) *figure.Figure {
	var panels []figure.Panel
	for kind, name := range errorNames {
		panel := figure.Panel{Title: name, X: entriesAxis(float64(s.sizes[0]), float64(s.sizes[len(s.sizes)-1])), Y: errorAxis("")}
		panel.Y.Min, panel.Y.Max = 0.01, 1000
		if kind == 0 {
			panel.Y.Label, panel.Legend = "error of one run", figure.BottomLeft
		}
		for _, f := range families {
			panel.Series = append(panel.Series, figure.Series{Name: s.families[f].name, Points: s.points(s.curve(f, kind, s.single)),
				Style: figure.Style{Marks: true, Place: f + 1, Dashed: f >= oneStage}})
		}
		panels = append(panels, panel)
	}
	return small(panels)
}

func (s *memoryStudy) points(errors []float64) []figure.Point {
	var list []figure.Point
	for i, e := range errors {
		list = append(list, figure.Point{X: float64(s.sizes[i]), Y: 100 * e})
	}
	return list
}

// table of errors; withSettings also has which setting a family had.
func (s *memoryStudy) table(of func(*outcome) errs, withSettings string) *figure.Table {
	t := &figure.Table{Columns: []string{"entries"}}
	for _, f := range s.families {
		t.Columns = append(t.Columns, f.name)
	}
	for i, entries := range s.sizes {
		cells := []string{fmt.Sprint(entries)}
		for k, f := range s.families {
			e := of(s.outcome(i, k))
			cell := strings.ReplaceAll(strings.Join(e.percents()[:at99+1], " / "), " % /", " /")
			if set := f.settings[s.tuned[i][k]].name; set != "" && withSettings != "" {
				cell += "<br>" + set
			}
			cells = append(cells, cell)
		}
		t.Add(cells...)
	}
	return t
}

// rivals of two fridges: families of which the better one is taken.
var rivals = []struct {
	name     string
	families []int
}{{"best T, one or four stages", []int{oneStage, fourStages}}, {"T at p99", []int{advised}}, {"overwriting", []int{overwriting}}}

// savings compares memory at equal error.
func (s *memoryStudy) savings(p *eval.Page) {
	p.Text("How many times the entries of two fridges a naive array needs for their error (of one run): the best threshold / a threshold at the 99th "+
		"percentile, as the array's authors advise / overwriting. \">\": it does not reach it with %d entries; \"<\": %d are enough already. In bytes "+
		"it is two thirds of that: a fridge's entry has 12, a naive one's 8.", s.sizes[len(s.sizes)-1], s.sizes[0])
	t := &figure.Table{Columns: append([]string{"entries of two fridges"}, errorNames[:]...)}
	for i, entries := range s.sizes {
		t.Add(s.row(fmt.Sprint(entries), func(kind, rival int) factor { return s.saving(twoFridges, i, kind, rivals[rival].families) })...)
	}
	t.Add(s.row("mean, two fridges", func(kind, rival int) factor { return s.mean(twoFridges, kind, rivals[rival].families) })...)
	t.Add(s.row("mean, one fridge", func(kind, rival int) factor { return s.mean(oneFridge, kind, rivals[rival].families) })...)
	p.Table(t)
	s.judge(p)
}

func (s *memoryStudy) row(name string, of func(kind, rival int) factor) []string {
	cells := []string{name}
	for kind := range errorNames {
		var list []string
		for r := range rivals {
			list = append(list, of(kind, r).String())
		}
		cells = append(cells, strings.Join(list, " / "))
	}
	return cells
}

// mean factor over the sizes; sizes at which only a bound is known count with it when they are the majority, else not.
func (s *memoryStudy) mean(family, kind int, rival []int) factor {
	var known, bounds []float64
	for i := range s.sizes {
		if f := s.saving(family, i, kind, rival); f.bound {
			bounds = append(bounds, f.times)
		} else {
			known = append(known, f.times)
		}
	}
	if len(bounds) > len(known) {
		return factor{times: geometric(append(known, bounds...)), bound: true}
	}
	return factor{times: geometric(known)}
}

func geometric(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(list)))
}

func (s *memoryStudy) judge(p *eval.Page) {
	for _, kind := range []int{at50, at95, at99} {
		best, at99th := s.mean(twoFridges, kind, rivals[0].families), s.mean(twoFridges, kind, rivals[1].families)
		p.Bar("memory of a naive array over that of two fridges, equal error at "+errorNames[kind], "2 to 4 times, or why not",
			fmt.Sprintf("%s the entries with the best T, %s with T at p99", best, at99th), best.times >= 2)
	}
	p.Text("%s", memoryText)
}

const memoryText = `**Where the 2 to 4 times are, and where not.** Against an array with the best threshold two fridges save entries at the 50th
percentile only, less than twice, and hardly a byte; at the 95th and 99th the array needs less than they do. Against an array with its
threshold at the 99th percentile they save what the paper says and more from 1,024 entries on, and against one that overwrites
always. Why:

- A threshold above nearly all delays makes the array a fair sample, too: whether it accepts a request does not depend on the
  request's delay, and what it accepts stays until its answer. It samples M/T requests a second: with T = 1 s, M. A fridge
  gets most samples of a delay t when its lifetime is t, M/(e t) a second: at the 99th percentile, 513 ms, M/1.4. In the tail a fixed
  lifetime is worth more than a geometric one, if it is known beforehand.
- For short delays the fridge has several times the samples, and p50 is where it is ahead. But a percentile is a share of the
  sum, and the heavy weights of the tail are in the sum: they spoil the 50th percentile as well.
- Two fridges give half of the memory to short delays, where samples are not what is missing; one fridge with the right p does as well
  or better here. (The paper sees two ahead of one. Its combination by sample variance is worse than ours: see below.)

What a fridge saves is the knowledge of T. With T at the 99th percentile, as the array's authors and section 5.1 advise, the array is
8 % or more off at p95 and 23 % or more at p99 with any memory up to 65,536 entries, and an array that overwrites is off by more
than an octave. Nothing in the array's samples tells that T is too small; a fridge with a wrong p is unbiased still, and its intervals widen. The paper
compares with the best T as well and finds 2 to 4 times. Its trace is not public, and its figure 2 shows 168 % of error for an array with T at the
99th percentile, which a fair sample of all that is faster cannot have: either its array or its trace differs from ours.`

// factor of memory. bound: it is at least that; below: the smallest array does it already, so it may be less.
type factor struct {
	times        float64
	bound, below bool
}

func (f factor) String() string {
	switch {
	case f.bound:
		return "> " + figure.Factor(f.times)
	case f.below:
		return "< " + figure.Factor(f.times)
	}
	return figure.Factor(f.times)
}

// saving is the memory at which the best of some naive arrays keeps the error of a family with size i, over that size.
func (s *memoryStudy) saving(family, i, kind int, rival []int) factor {
	errors := s.curve(rival[0], kind, s.single)
	for _, other := range rival[1:] {
		for k, e := range s.curve(other, kind, s.single) {
			errors[k] = min(errors[k], e)
		}
	}
	f := s.interpolate(errors, s.curve(family, kind, s.single)[i])
	f.times /= float64(s.sizes[i])
	return f
}

// interpolate finds the memory at which errors by size first fall to one that is wanted, between two sizes by a
// straight line in the logarithms. An error that is never reached gives the largest size as a bound.
func (s *memoryStudy) interpolate(errors []float64, want float64) factor {
	for k, e := range errors {
		if e > want {
			continue
		}
		memory := math.Log2(float64(s.sizes[k]))
		if k > 0 && !math.IsInf(errors[k-1], 0) && e > 0 {
			memory -= math.Log(want/e) / math.Log(errors[k-1]/e) * math.Log2(float64(s.sizes[k])/float64(s.sizes[k-1]))
		}
		return factor{times: math.Exp2(memory), below: k == 0 && e < want}
	}
	return factor{times: float64(s.sizes[len(s.sizes)-1]), bound: true}
}
