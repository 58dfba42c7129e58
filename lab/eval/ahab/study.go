// Package ahab evaluates fair bandwidth (dissertation, chapter 6) in virtual time, through the bytecode.
package ahab

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/ahab/link"
	"github.com/xdpmon/xdpmon/userspace/ahab"
)

func init() {
	eval.Register(&eval.Study{Name: "ahab", Title: "AHAB: how fast and how fair", Intro: intro, Sections: []eval.Section{
		{Name: "convergence", Title: "Figure 6.8: users who leave and come", Run: convergence},
		{Name: "fairness", Title: "Figure 6.11: users of 10, 20, 30 ... Mbit/s", Run: fairness},
		{Name: "weights", Title: "Figure 6.12: weights of 1, 2 and 4", Run: weights},
		{Name: "slices", Title: "Figure 6.13: two slices, one bottleneck", Run: slices},
		{Name: "unseen", Title: "Seeds that nothing was chosen by", Run: unseen},
		{Name: "many", Title: "Figure 6.14: many users, one sketch", Run: many},
	}})
}

const intro = `
Figures of chapter 6 of Chen's dissertation in virtual time: every packet of a model goes through parser, chain and program in the kernel
at the time that it bears, and what the program decided is what became of it. Users send datagrams of 1,500 bytes whose gaps vary by 10 % either
way. The limit is the slice's register, looked at every 0.1 ms; a limit above the capacity counts as the capacity.`

// variant of the program.
type variant struct {
	name string
	set  map[string]string
}

func (v variant) open(capacity string, seed uint64) (*link.Link, error) {
	set := map[string]string{"capacity": capacity}
	for k, text := range v.set {
		set[k] = text
	}
	return link.New(set, seed)
}

var variants = []variant{{"interpolation, exact", nil}, {"interpolation, table (the twin's)", map[string]string{"form": "table"}},
	{"AIMD, as HCSFQ", map[string]string{"update": "aimd"}}}

var full = ahab.Units{Tau: 4 * time.Millisecond, Norm: 1 << 16}.Limit(link.Capacity / 8)

// settling of a variant over seeds, in ms.
type settling struct{ leaves, joins, jitter []float64 }

func (s *settling) add(d link.Departures, r *link.Result) {
	for _, e := range d.Events {
		ms := e.Settled(r, full) * 1e3
		if e.Leaves {
			s.leaves = append(s.leaves, ms)
			continue
		}
		s.joins = append(s.joins, ms)
		s.jitter = append(s.jitter, e.Jitter(r, full))
	}
}

func meanMax(list []float64) (mean, most float64) {
	for _, x := range list {
		mean += x / float64(len(list))
		most = max(most, x)
	}
	return mean, most
}

func rms(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x * x
	}
	return math.Sqrt(sum / float64(len(list)))
}

func convergence(ctx context.Context, p *eval.Page) error {
	seeds := eval.Pick(p, 20, 2)
	table := figure.Table{Columns: []string{"limit", "leaves: mean ms", "at most", "comes: mean ms", "at most", "jitter, rms"}}
	picture := figure.Figure{}
	for _, v := range variants {
		s, first, err := v.settle(ctx, 1, seeds)
		if err != nil {
			return err
		}
		leave, leaveMax := meanMax(s.leaves)
		join, joinMax := meanMax(s.joins)
		jitter := rms(s.jitter)
		table.Rows = append(table.Rows, []string{v.name, fmt.Sprintf("%.1f", leave), fmt.Sprintf("%.1f", leaveMax), fmt.Sprintf("%.1f", join),
			fmt.Sprintf("%.1f", joinMax), fmt.Sprintf("%.1f %%", 100*jitter)})
		p.Log("%s: leaves %.2f/%.1f ms, comes %.2f/%.1f ms, jitter %.3f", v.name, leave, leaveMax, join, joinMax, jitter)
		picture.Panels = append(picture.Panels, panel(v.name, first))
		if v.set["update"] == "aimd" {
			continue
		}
		most := .05
		if v.set != nil {
			most = .08
		}
		p.Bar(v.name+": a user leaves, mean", "2.5 ms", fmt.Sprintf("%.2f ms", leave), leave <= 2.5)
		p.Bar(v.name+": a user leaves, at most", "4.5 ms", fmt.Sprintf("%.1f ms", leaveMax), leaveMax <= 4.5)
		p.Bar(v.name+": a user comes, at most", "12 ms", fmt.Sprintf("%.1f ms", joinMax), joinMax <= 12)
		p.Bar(v.name+": jitter of the limit", fmt.Sprintf("%.0f %%", 100*most), fmt.Sprintf("%.1f %%", 100*jitter), jitter <= most)
	}
	p.Text(`Four users of 100 Mbit/s share 100 Mbit/s. They come one by one, 100 ms apart, and leave in the opposite order; departures fall on
all parts of an epoch, %d seeds. Time is from the event until the limit is first within 10 %% of the fair share; jitter is the root mean square of its deviation
in the second half of the time in which nobody comes or leaves.`, seeds)
	p.Table(&table)
	return p.Figure(&picture, "convergence", "what each user gets, and the limit, when the second of two users leaves")
}

func (v variant) settle(ctx context.Context, seed, seeds int) (*settling, *link.Result, error) {
	var s settling
	var first *link.Result
	for n := range seeds {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		l, err := v.open("100Mbit", uint64(seed+n))
		if err != nil {
			return nil, nil, err
		}
		d := link.NewDepartures(time.Duration(n) * 1063 * time.Microsecond / 20)
		r, err := l.Run(d.Users, d.End, nil)
		l.Close()
		if err != nil {
			return nil, nil, err
		}
		s.add(d, r)
		if n == 0 {
			first = r
		}
	}
	return &s, first, nil
}

// panel shows the milliseconds around the last departure.
func panel(title string, r *link.Result) figure.Panel {
	const from, until = 590, 660
	out := figure.Panel{Title: title, X: figure.Axis{Label: "ms after the second user left"}, Y: figure.Axis{Label: "Mbit/s", Max: 130}, Legend: figure.BottomRight}
	for n := range 2 {
		s := figure.Series{Name: fmt.Sprintf("user %d", n)}
		for ms := from; ms < until; ms++ {
			s.Points = append(s.Points, figure.Point{X: float64(ms - 600), Y: r.Users[n].Passed[ms] * 8 / 1e3})
		}
		out.Series = append(out.Series, s)
	}
	limit := figure.Series{Name: "limit"}
	for ms := from; ms < until; ms++ {
		limit.Points = append(limit.Points, figure.Point{X: float64(ms - 600), Y: min(1, float64(r.LimitAt(1, time.Duration(ms)*time.Millisecond))/full) * 100})
	}
	out.Series = append(out.Series, limit)
	return out
}

func fairness(ctx context.Context, p *eval.Page) error {
	table := figure.Table{Columns: []string{"limit", "users", "mean deviation from max-min", "worst user", "use of the capacity"}}
	seconds := eval.Pick(p, 5, 1)
	for _, v := range variants[:2] {
		for _, n := range []int{4, 8, 16} {
			if err := ctx.Err(); err != nil {
				return err
			}
			mean, worst, use, err := v.share(1, link.Rising(n), time.Duration(seconds)*time.Second)
			if err != nil {
				return err
			}
			table.Rows = append(table.Rows, []string{v.name, fmt.Sprint(n), fmt.Sprintf("%.1f %%", 100*mean), fmt.Sprintf("%.1f %%", 100*worst), fmt.Sprintf("%.3f", use)})
			p.Log("%s, %d users: %.3f off, worst %.3f, use %.3f", v.name, n, mean, worst, use)
			p.Bar(fmt.Sprintf("%s: %d users of 10, 20, 30 ... Mbit/s", v.name, n), "6 % of max-min", fmt.Sprintf("%.1f %%", 100*mean), mean <= .06)
		}
	}
	p.Text("Users of 10, 20, 30 ... Mbit/s on 100 Mbit/s for %d s, the first 200 ms left out. Deviation is that of a user's mean throughput from its max-min share.", seconds)
	p.Table(&table)
	return nil
}

func (v variant) share(seed uint64, users []link.User, end time.Duration) (mean, worst, use float64, err error) {
	l, err := v.open("100Mbit", seed)
	if err != nil {
		return 0, 0, 0, err
	}
	defer l.Close()
	r, err := l.Run(users, end, nil)
	if err != nil {
		return 0, 0, 0, err
	}
	for n, fair := range link.MaxMin(users, link.Capacity) {
		got := r.Users[n].Rate(200*time.Millisecond, end)
		d := math.Abs(got/fair - 1)
		mean, worst, use = mean+d/float64(len(users)), max(worst, d), use+got/link.Capacity
	}
	return mean, worst, use, nil
}

// unseen repeats figures 6.8 and 6.11 on seeds that were first used when nothing was changed any more.
func unseen(ctx context.Context, p *eval.Page) error {
	const from = 1001
	seeds, seconds := eval.Pick(p, 8, 1), eval.Pick(p, 2, 1)
	table := figure.Table{Columns: []string{"limit", "leaves: mean ms", "at most", "comes: at most", "jitter, rms", "4 users: off max-min", "8", "16"}}
	for n, v := range variants[:2] {
		s, _, err := v.settle(ctx, from, seeds)
		if err != nil {
			return err
		}
		leave, leaveMax := meanMax(s.leaves)
		_, joinMax := meanMax(s.joins)
		row, worst := []string{v.name, fmt.Sprintf("%.1f", leave), fmt.Sprintf("%.1f", leaveMax), fmt.Sprintf("%.1f", joinMax), fmt.Sprintf("%.1f %%", 100*rms(s.jitter))}, 0.
		for _, users := range []int{4, 8, 16} {
			mean, _, _, err := v.share(from, link.Rising(users), time.Duration(seconds)*time.Second)
			if err != nil {
				return err
			}
			row, worst = append(row, fmt.Sprintf("%.1f %%", 100*mean)), max(worst, mean)
		}
		table.Rows = append(table.Rows, row)
		ok := leave <= 2.5 && leaveMax <= 4.5 && joinMax <= 12 && rms(s.jitter) <= []float64{.05, .08}[n] && worst <= .06
		p.Log("%s, other seeds: leaves %.2f/%.1f ms, comes %.1f, jitter %.3f, %.3f off max-min", v.name, leave, leaveMax, joinMax, rms(s.jitter), worst)
		p.Bar(v.name+", seeds that nothing was chosen by", "all of the above", fmt.Sprintf("%.2f, %.1f, %.1f ms, %.1f %%, %.1f %%", leave, leaveMax, joinMax, 100*rms(s.jitter), 100*worst), ok)
	}
	p.Text("Figures 6.8 and 6.11 again, with seeds from %d on: %d of the former, one of the latter, %d s. Whatever is a choice of ours (a quarter of a step near the aim, the ceiling, the start of the Weyl sequence) was made on others.", from, seeds, seconds)
	p.Table(&table)
	return nil
}

// crowds of figure 6.14: users in 15 minutes, and what they send.
var crowds = []struct {
	users   float64
	load    float64 // bits a second
	columns string
}{{5.98e6, .84e9, "512"}, {5.98e6, .84e9, "2048"}, {5.98e6, .84e9, "4096"}, {23.92e6, 3.36e9, "16384"}}

func many(ctx context.Context, p *eval.Page) error {
	table := figure.Table{Columns: []string{"users in 15 minutes", "capacity", "sketch", "packets", "users seen", "packets under a limit", "below the limit: lost", "above: lost", "above: due"}}
	piece := time.Duration(eval.Pick(p, 5, 1)) * time.Second
	for _, c := range crowds {
		if err := ctx.Err(); err != nil {
			return err
		}
		j, capacity, err := crowded(c.users/900, c.load, c.columns, piece)
		if err != nil {
			return err
		}
		lost := j.Lost / j.Below
		table.Rows = append(table.Rows, []string{fmt.Sprintf("%.2f M", c.users/1e6), fmt.Sprintf("%.2f Gbit/s", capacity/1e9), "3 x " + c.columns, fmt.Sprint(j.Packets), fmt.Sprint(j.Users),
			fmt.Sprintf("%.0f %%", 100*j.Limited), fmt.Sprintf("%.4f %%", 100*lost), fmt.Sprintf("%.2f %%", 100*j.LostAbove/j.Above), fmt.Sprintf("%.2f %%", 100*j.Due/j.Above)})
		p.Log("%.2f M users, 3 x %s: %d packets, %.5f lost below the limit", c.users/1e6, c.columns, j.Packets, lost)
		if c.columns == "4096" || c.columns == "16384" {
			p.Bar(fmt.Sprintf("%.2f M users, 3 x %s: users below the limit lose", c.users/1e6, c.columns), "0.1 %", fmt.Sprintf("%.4f %%", 100*lost), lost <= .001)
		}
	}
	p.Text(`A model, since the provider's trace is not public: users arrive by chance, as many as make that number in 15 minutes, with volumes from a
cut Pareto distribution (exponent 1.2, at most 20 MB), log-normal rates (median 2 Mbit/s, at most 200), and exponential gaps. %v of it are replayed, behind 2 s that fill the
link: what the sketch has to tell apart are the users of the last milliseconds, so the piece's length does not matter to it, nor do users who have left. The capacity is the piece's mean rate, as in
the dissertation. A packet is one of a user below the limit where the user's exact rate (an ideal filter of its own) is at most the limit; *due* is what
1 - limit / exact rate would have dropped.`, piece)
	p.Table(&table)
	return nil
}

// fill is how long a crowd sends before anything is judged.
const fill = 2 * time.Second

func crowded(arrivals, load float64, columns string, piece time.Duration) (*link.Judged, float64, error) {
	bytes := 0.0
	for c := link.NewCrowd(1, arrivals, load); ; {
		_, at, packet := c.Next()
		if at >= fill+piece {
			break
		}
		if at >= fill {
			bytes += float64(packet.Len)
		}
	}
	capacity := 8 * bytes / piece.Seconds()
	l, err := link.New(map[string]string{"capacity": fmt.Sprintf("%.0fbit", capacity), "columns": columns}, 1)
	if err != nil {
		return nil, 0, err
	}
	defer l.Close()
	const tau = 4 * time.Millisecond
	highest := uint32(ahab.Units{Tau: tau, Norm: 1 << 16}.Limit(capacity / 8))
	j, err := l.Judge(link.NewCrowd(1, arrivals, load), fill, fill+piece, tau, highest)
	return j, capacity, err
}
