package carpe

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// mostState is what carpe may hold of what counting all does.
const mostState = .55

// swept are the scores of one threshold.
type swept struct {
	percentile                float64
	carpe, agnostic, sampling []score
	all                       score
}

func (n network) swept(ctx context.Context, p *eval.Page, all []*window, percentile float64, starts ...int) (r swept, err error) {
	r.percentile = percentile
	for _, one := range []struct {
		to   *[]score
		list []method
	}{{&r.carpe, carpes(p, starts...)}, {&r.agnostic, agnostic(p)}, {&r.sampling, samplings(p)}} {
		if *one.to, err = n.sweep(ctx, all, percentile, one.list); err != nil {
			return r, err
		}
	}
	r.all, err = n.judge(ctx, all, method{name: "report all", all: true}, percentile)
	p.Log("percentile %g is done", percentile)
	return r, err
}

func percentileName(p float64) string { return fmt.Sprintf("%gth", math.Round(p*1e4)/100) }

var targets = []float64{.90, .95, .97}

func accuracy(ctx context.Context, p *eval.Page) error {
	all := windows(p, usual)
	compared := table()
	var f1, precision, recall []figure.Series
	for _, percentile := range percentiles {
		r, err := usual.swept(ctx, p, all, percentile, 8)
		if err != nil {
			return err
		}
		r.compare(p, compared, "", percentile > .99, targets)
		if percentile == .9999 {
			f1 = []figure.Series{curve("carpe", front(r.carpe, mostState), f1Of), curve("locality-agnostic", front(r.agnostic, 1), f1Of),
				curve("sampling", front(r.sampling, 1), f1Of), {Name: "report all", Points: []figure.Point{{X: r.all.bytes / 1e3, Y: r.all.f1}}}}
		}
		for _, one := range []struct {
			name   string
			scores []score
			state  float64
		}{{"carpe", r.carpe, mostState}, {"sampling", r.sampling, 1}} {
			name := one.name + ", " + percentileName(percentile)
			precision = append(precision, curve(name, front(one.scores, one.state), func(s score) float64 { return s.precision }))
			recall = append(recall, curve(name, front(one.scores, one.state), func(s score) float64 { return s.recall }))
		}
	}
	low, err := usual.swept(ctx, p, all, .99, 2, 4, 8, 16, 32)
	if err != nil {
		return err
	}
	low.compare(p, compared, "", false, []float64{.50, .60, .70, .80, .90, .95})
	p.Text("What it takes to reach an F1, at most %s of the state of counting all for carpe. Bars are for the 99.9th and the 99.99th percentile; the 99th, with 2,700 flows above it, is shown, with s of 1/2 to 1/32.", figure.Percent(mostState))
	p.Table(compared)
	low.contradiction(p)
	kilobytes := figure.Axis{Label: "kilobytes to the coordinator in a window", Base: 10}
	for _, f := range []struct {
		name, label, alternative string
		series                   []figure.Series
	}{{"accuracy", "F1", "figure 3: F1 over bytes, 99.99th percentile", f1}, {"precision", "precision", "figure 4: precision over bytes, both thresholds", precision},
		{"recall", "recall", "figure 5: recall over bytes, both thresholds", recall}} {
		if err := p.Figure(&figure.Figure{Panels: []figure.Panel{{X: kilobytes, Y: figure.Axis{Label: f.label}, Series: f.series, Legend: figure.BottomRight}}}, f.name,
			f.alternative); err != nil {
			return err
		}
	}
	return nil
}

// contradiction is where sampling takes fewer bytes, which it never does in the paper at rates below .05.
func (r *swept) contradiction(p *eval.Page) {
	least, from := math.Inf(1), math.NaN()
	for _, s := range r.carpe {
		if s.state <= mostState {
			least = min(least, s.bytes)
		}
	}
	for f1 := .95; f1 > .3; f1 -= .01 {
		c, found := cheapest(r.carpe, f1, mostState)
		s, also := cheapest(r.sampling, f1, 1)
		if found && also && c.bytes >= s.bytes {
			break
		}
		if found {
			from = f1
		}
	}
	what := fmt.Sprintf("F1 %.2f or more", from)
	p.Shown(percentileName(r.percentile)+" percentile: carpe takes fewer bytes than sampling (the paper: strictly, at rates below 0.05)", what)
	p.Text("At the %s percentile carpe takes fewer bytes than sampling at an F1 of %.2f or more. Below that the paper's \"strictly better\" is contradicted: epsilon is below 1, an elephant has a report at least, and so has many a "+
		"flow of half the threshold; the least that carpe sends is %.1f kB, while sampling's rate has no end below. Sweeps until 2026-11-23 ended with epsilon at .3, more than three reports an elephant, which is dear where an F1 of .70 is enough.", percentileName(r.percentile), from, least/1e3)
}

func f1Of(s score) float64 { return s.f1 }

func curve(name string, scores []score, y func(score) float64) figure.Series {
	c := figure.Series{Name: name}
	for _, s := range scores {
		c.Points = append(c.Points, figure.Point{X: s.bytes / 1e3, Y: y(s)})
	}
	return c
}

func table() *figure.Table {
	return &figure.Table{Columns: []string{"threshold", "F1", "carpe, kB", "of that hellos, updates", "epsilon", "1/s", "state", "locality-agnostic, kB", "sampling, kB", "rate", "below sampling"}}
}

// compare adds what it takes to reach F1s of a kind of traffic.
func (r *swept) compare(p *eval.Page, t *figure.Table, of string, judged bool, targets []float64) {
	for _, f1 := range targets {
		c, found := cheapest(r.carpe, f1, mostState)
		s, also := cheapest(r.sampling, f1, 1)
		a, agnostic := cheapest(r.agnostic, f1, 1)
		kilo := func(x score, there bool) string {
			if !there {
				return "-"
			}
			return fmt.Sprintf("%.1f", x.bytes/1e3)
		}
		saved := 1 - c.bytes/s.bytes
		what := fmt.Sprintf("%s%s percentile, F1 %.2f", of, percentileName(r.percentile), f1)
		switch {
		case found && also:
			t.Add(percentileName(r.percentile), fmt.Sprintf("%.2f", f1), kilo(c, true), figure.Percent(c.hellos/c.bytes), fmt.Sprintf("%.4f", c.epsilon), fmt.Sprint(c.start),
				figure.Percent(c.state), kilo(a, agnostic), kilo(s, true), fmt.Sprintf("%.4f", s.rate), figure.Percent(saved))
			if judged {
				p.Bar(what+": bytes below sampling", "40 % or more", figure.Percent(saved), saved >= .4)
				p.Bar(what+": state below counting all", "45 % or more", figure.Percent(1-c.state), c.state <= mostState)
			} else {
				p.Shown(what+": bytes below sampling", figure.Percent(saved))
			}
		default:
			t.Add(percentileName(r.percentile), fmt.Sprintf("%.2f", f1), kilo(c, found), "", "", "", "", kilo(a, agnostic), kilo(s, also), "", "-")
			if judged {
				p.Bar(what+": bytes below sampling", "40 % or more", "F1 is not reached", false)
			}
		}
	}
}

func flatter(ctx context.Context, p *eval.Page) error {
	for _, one := range []struct {
		name   string
		change func(n *network)
	}{
		{"Zipf 0.8", func(n *network) { n.skew = .8 }},
		{"what does not go to the preferred switch goes to all nine others", func(n *network) { n.spread = true }},
		{"4,096 source prefixes", func(n *network) { n.groups = 4096 }},
	} {
		n := usual
		one.change(&n)
		t := table()
		all := windows(p, n)
		for _, percentile := range percentiles[:2] {
			r, err := n.swept(ctx, p, all, percentile, 8)
			if err != nil {
				return err
			}
			r.compare(p, t, one.name+", ", false, targets[1:2])
		}
		p.Text("%s:", one.name)
		p.Table(t)
	}
	return nil
}

// agents: the same traffic, split among more and more hosts.
func agents(ctx context.Context, p *eval.Page) error {
	t := &figure.Table{Columns: []string{"hosts", "flows are at", "observers told", "reports of an elephant", "F1", "kB"}}
	first := map[bool]float64{}
	worst := 0.
	for _, even := range []bool{false, true} {
		for _, hosts := range eval.Pick(p, []int{10, 30, 100, 300, 1000}, []int{10, 30}) {
			n := usual
			n.switches, n.even, n.flows, n.packets = hosts, even, n.flows/5, n.packets/5
			var all []*window
			for seed := range eval.Pick(p, 5, 1) {
				all = append(all, n.window(uint64(seed)+1))
			}
			m := method{name: "carpe", epsilon: .05, start: 4, locality: true}
			s, err := n.judge(ctx, all, m, .9995)
			if err != nil {
				return err
			}
			threshold := float64(all[0].threshold(.9995))
			if first[even] == 0 {
				first[even] = s.perElephant
			}
			worst = max(worst, s.perElephant/first[even])
			t.Add(fmt.Sprint(hosts), map[bool]string{false: "two of them", true: "all, evenly"}[even], fmt.Sprint(m.most(threshold, n.informed(all[0])(0))), fmt.Sprintf("%.1f", s.perElephant),
				fmt.Sprintf("%.3f", s.f1), fmt.Sprintf("%.1f", s.bytes/1e3))
		}
	}
	p.Text("1,000,000 packets of 54,000 flows, 5 windows, the threshold at the 99.95th percentile, epsilon = .05, s = 1/4. An elephant has 20 reports and more, as it is larger than the threshold.")
	p.Table(t)
	p.Bar("reports of an elephant, 10 to 1,000 hosts", "do not grow", fmt.Sprintf("%.2f times those of 10 hosts at most", worst), worst <= 1.05)
	return nil
}
