package lean

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	estimates "github.com/xdpmon/xdpmon/tests/outcome"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/exact"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// The paper's minute: section 6.1.
const paperPackets, paperFlows = 70_000_000, 3_700_000

// paperRuns are few: one takes half an hour.
const paperRuns = 3

// scale is the paper's minute in the paper's memory. Packets are made while they are replayed: what is held is a record a flow, and while the truth is
// counted every flow's state. One trace after the other, so that there is memory for it. An interrupted run writes the traces that it has.
func scale(ctx context.Context, p *eval.Page) error {
	warn(p)
	list := both(base, 4*base)
	runs := eval.Pick(p, paperRuns, 1)
	if p.Seeds > 0 {
		runs = p.Seeds
	}
	outcomes, held := make([]outcome, len(list)), make([]enclosures, len(list))
	var first *truth
	for seed := range runs {
		o := model(p, bar, uint64(seed+1))
		if !p.Quick {
			o.Packets, o.Flows = paperPackets, paperFlows
		}
		t, lines, err := playScale(ctx, p, o, list)
		if ctx.Err() != nil && seed > 0 {
			p.Log("interrupted: the page has the first %d seeds", seed)
			runs = seed
			break
		}
		if err != nil {
			return err
		}
		if first == nil {
			first = t.truth
		}
		for n, c := range list {
			s, err := t.judge(lines[n], c.statistic)
			if err != nil {
				return err
			}
			outcomes[n] = append(outcomes[n], s)
			if !c.paper {
				held[n].add(estimates.Of(lines[n].Report, t.body(lines[n])))
			}
		}
	}
	writeScale(p, runs, list, outcomes, held)
	describe(p, first)
	return nil
}

// wholeTruth is the truth with every flow's counts.
type wholeTruth struct {
	*truth
	tallies map[string]exact.Tally // by name, of flows that a report lists
}

// playScale counts a trace exactly, then replays it through all contestants in one chain.
func playScale(ctx context.Context, p *eval.Page, o traffic.LeanOptions, list []contestant) (*wholeTruth, []report.Line, error) {
	started := time.Now()
	m, err := traffic.NewLean(o)
	if err != nil {
		return nil, nil, err
	}
	all := exact.NewTruth(exact.TruthOptions{Key: fiveTuple, ID: "tcp-bytes"})
	t := &wholeTruth{truth: &truth{of: map[string]*ranking{}}, tallies: map[string]exact.Tally{}}
	stream := &logged{Model: m, log: func(n int) { p.Log("seed %d: %d million packets counted", o.Seed, n/1_000_000) }}
	for one := (packet.Packet{}); stream.Next(&one); t.packets++ {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		all.Packet(&one)
	}
	tallies, _ := all.Window()
	for _, s := range statistics {
		t.of[s] = rank(tallies, s)
	}
	p.Log("seed %d: the truth of %d packets, %d flows took %v and %s", o.Seed, t.packets, len(tallies), time.Since(started).Round(time.Second), resident())
	all = nil
	debug.FreeOSMemory()
	lines, err := replayScale(ctx, p, o, list)
	if err != nil {
		return nil, nil, err
	}
	t.keep(tallies, lines)
	p.Log("seed %d: done after %v, %s", o.Seed, time.Since(started).Round(time.Second), resident())
	return t, lines, nil
}

func replayScale(ctx context.Context, p *eval.Page, o traffic.LeanOptions, list []contestant) ([]report.Line, error) {
	m, err := traffic.NewLean(o)
	if err != nil {
		return nil, err
	}
	configs := make([]bytecode.Config, 0, len(list))
	for _, c := range list {
		configs = append(configs, c.config())
	}
	stream := &logged{Model: m, log: func(n int) { p.Log("seed %d: %d million packets replayed", o.Seed, n/1_000_000) }}
	return bytecode.Replay(ctx, traffic.Frames(stream), o.Seed, configs)
}

// resident is the most memory that this process had.
func resident() string {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.1f GB resident at most", float64(u.Maxrss)/1e6)
}

// logged is a model that reports its progress.
type logged struct {
	traffic.Model
	n   int
	log func(n int)
}

// loggedEach is how many packets are between two lines.
const loggedEach = 5_000_000

// Next implements traffic.Model.
func (l *logged) Next(p *packet.Packet) bool {
	ok := l.Model.Next(p)
	if l.n++; ok && l.n%loggedEach == 0 {
		l.log(l.n)
	}
	return ok
}

// labels is the number of a table's columns that name a flow.
func labels(t report.Table) int {
	return slices.IndexFunc(t.Columns, func(c report.Column) bool { return !c.Label })
}

// keep the counts of the flows that are listed somewhere.
func (t *wholeTruth) keep(tallies map[heavy.Key]exact.Tally, lines []report.Line) {
	listed := map[string]bool{}
	for _, l := range lines {
		for _, table := range l.Report.Tables {
			for _, row := range table.Rows {
				listed[name(row[:labels(table)])] = true
			}
		}
	}
	for key, tally := range tallies {
		if n := nameOf(key); listed[n] {
			t.tallies[n] = tally
		}
	}
}

// body is the truth of the flows that a report lists, in its columns.
func (t *wholeTruth) body(l report.Line) (b report.Body) {
	for _, table := range l.Report.Tables {
		n := labels(table)
		out := report.Table{Name: table.Name, Columns: table.Columns[:n+1]}
		for _, row := range table.Rows {
			out.Rows = append(out.Rows, append(slices.Clone(row[:n]), valueOf(t.tallies[name(row[:n])], table.Name)))
		}
		b.Tables = append(b.Tables, out)
	}
	return b
}

// enclosures counts what a report's intervals and bounds promised, and held.
type enclosures struct{ intervals, intervalsHold, bounds, boundsHold int }

func (e *enclosures) add(list []estimates.Outcome) {
	for _, o := range list {
		holds := 0
		if o.Holds() {
			holds = 1
		}
		switch {
		case !o.Judged || !o.Enclosed:
		case o.Promise == report.Bound:
			e.bounds, e.boundsHold = e.bounds+1, e.boundsHold+holds
		default:
			e.intervals, e.intervalsHold = e.intervals+1, e.intervalsHold+holds
		}
	}
}

// String is what held, of how many.
func (e enclosures) String() string {
	switch {
	case e.intervals > 0:
		return fmt.Sprintf("%s of %d intervals", figure.Percent(share(e.intervalsHold, e.intervals)), e.intervals)
	case e.bounds > 0:
		return fmt.Sprintf("%s of %d bounds", figure.Percent(share(e.boundsHold, e.bounds)), e.bounds)
	}
	return "-"
}

// traces of so many seeds, in words.
func traces(n int) string {
	if n == 1 {
		return "one seed"
	}
	return fmt.Sprintf("%d seeds", n)
}

func writeScale(p *eval.Page, runs int, list []contestant, outcomes []outcome, held []enclosures) {
	p.Text("The paper's minute itself: 70 million packets of 3.7 million flows (section 6.1), the same victims' rates as above, %s. Packets are made while they are replayed; "+
		"this process had %s, most of it for the exact count. The last column: of the flows in the list, enclosures that hold the truth.", traces(runs), resident())
	table := &figure.Table{Columns: []string{"statistic", "form", "memory", "used", "mean recall", "median recall", "precision", "reported flows", "enclosures that hold"}}
	sum := enclosures{}
	for n, c := range list {
		o := outcomes[n]
		table.Add(c.statistic, c.form(), kilobytes(c.memory), bytes(o.memory()), figure.Percent(o.recall().mean), o.recall().String(),
			o.precision().String(), fmt.Sprintf("%.0f", o.candidates()), held[n].String())
		if c.paper {
			continue
		}
		sum = enclosures{sum.intervals + held[n].intervals, sum.intervalsHold + held[n].intervalsHold, sum.bounds + held[n].bounds, sum.boundsHold + held[n].boundsHold}
		p.Bar(fmt.Sprintf("%s: recall of the true top 100 among 3.7 million flows, %s in all, mean of %s", c.statistic, kilobytes(c.memory), traces(runs)),
			figure.Percent(demanded[c.memory])+" or more", figure.Percent(o.recall().mean)+" in "+bytes(o.memory()),
			o.recall().mean >= demanded[c.memory] && o.memory() <= float64(c.memory))
	}
	p.Bar("3.7 million flows: intervals that hold the truth", "93 % or more", fmt.Sprintf("%s of %d", figure.Percent(share(sum.intervalsHold, sum.intervals)), sum.intervals),
		share(sum.intervalsHold, sum.intervals) >= 0.93)
	p.Bar("3.7 million flows: bounds that hold the truth", "95 % or more", fmt.Sprintf("%s of %d", figure.Percent(share(sum.boundsHold, sum.bounds)), sum.bounds),
		share(sum.boundsHold, sum.bounds) >= 0.95)
	p.Table(table)
}
