package beaucoup

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// threshold of distinct flows at which all algorithms are to stop, as in the paper.
const stopAt = 1000

// stream is packets, all TCP, whose attribute is the flow.
type stream struct {
	name     string
	packets  []packet.Packet
	flows    []uint32 // number of the packet's flow
	distinct []int    // flows after each packet
}

func newStream(name string, packets []packet.Packet) *stream {
	type key struct {
		src, dst     netip.Addr
		sport, dport uint16
	}
	s := &stream{name: name, packets: packets}
	known := map[key]uint32{}
	for i := range packets {
		p := &packets[i]
		k := key{p.Src, p.Dst, p.SrcPort, p.DstPort}
		if _, ok := known[k]; !ok {
			known[k] = uint32(len(known))
		}
		s.flows, s.distinct = append(s.flows, known[k]), append(s.distinct, len(known))
	}
	return s
}

// streams that are counted: a model with flows of very different sizes, and a capture.
func streams() ([]*stream, error) {
	m, err := traffic.NewZipf(traffic.ZipfOptions{Packets: 60_000, Flows: 30_000, Skew: 1, Seed: 7})
	if err != nil {
		return nil, err
	}
	var list []packet.Packet
	for {
		var p packet.Packet
		if !m.Next(&p) {
			break
		}
		list = append(list, p)
	}
	all := []*stream{newStream("Zipf", list)}
	src, err := openCapture()
	if err != nil {
		return nil, err
	}
	if list, err = packetsOf(src); err != nil {
		return nil, err
	}
	return append(all, newStream(ordinaryTraffic, list)), nil
}

// curve is an algorithm at several numbers of accesses a packet.
type curve struct {
	name   string
	series []standingAt
}

type standingAt struct {
	errors   tally
	accesses tally // a packet
	unending int   // runs that had not stopped when the stream ended
}

var targets = []float64{1, .5, .25, .125, .0625, .0312, .0156, .0078, .0039}

// makers of the algorithms in Go, for a target of accesses a packet.
var makers = []struct {
	name string
	make func(accesses float64, rng *rand.Rand) counter
}{
	{"packet sampling, Chao", func(a float64, rng *rand.Rand) counter { return newSampling(a, rng, true) }},
	{"packet sampling, GEE", func(a float64, rng *rand.Rand) counter { return newSampling(a, rng, false) }},
	{"NitroSketch-UnivMon, writes only", func(a float64, rng *rand.Rand) counter { return newUnivMon(a, rng, false) }},
	{"NitroSketch-UnivMon", func(a float64, rng *rand.Rand) counter { return newUnivMon(a, rng, true) }},
	{"HyperLogLog behind a hash sample", func(a float64, _ *rand.Rand) counter { return newHyperLogLog(64, a) }},
}

// accesses is figure 4.7.
func accesses(ctx context.Context, p *eval.Page) error {
	p.Text(`Each algorithm counts the flows of a stream and stops when it says more than %d. **An access** is a word of state that a packet
makes it read, write, or both. BeauCoup: three words a collected coupon (end of the window, checksum of the key, coupons), as its
report counts them, and four when there are 64 coupons; one key alone would not need the first two. HyperLogLog: one a packet, its
register, whose estimate is for free. Packet sampling: the two addresses of a sampled packet; what is made of the list is for free. The paper's
estimator is made of what was sampled once and twice, as Chao's is; that of Charikar and others (GEE) is shown beside it. NitroSketch-UnivMon: 16 layers of
4 x 1024 counters with a sixteenth of the accesses each; an update of a layer touches the counters that it changes and the others of the
item, whose median decides on its place in the heap. *Writes only* leaves the latter out. Its heaps of 256 items are for free. Accesses are
means a packet, duplicates included; *equal error* compares with the better of BeauCoup's two forms.`, stopAt)
	all, err := streams()
	if err != nil {
		return err
	}
	fig := &figure.Figure{}
	for _, s := range all {
		curves, err := s.measure(ctx, eval.Pick(p, 200, 10))
		if err != nil {
			return err
		}
		p.Text("**%s**: %d packets of %d flows, the first %d of them in %d packets; %d runs with different hashes.", s.name, len(s.packets),
			s.distinct[len(s.distinct)-1], stopAt, s.until(stopAt), eval.Pick(p, 200, 10))
		showCurves(p, curves)
		compare(p, s, curves)
		fig.Panels = append(fig.Panels, panelOf(s, curves, len(fig.Panels) == 0))
	}
	p.Text(`The more packets a flow has, the better for those who sample packets: they see the flow sooner or later, while BeauCoup accesses
memory for every packet of the few flows whose hash draws. The model is the paper's case, a backbone link with flows of few packets in the
time that a thousand take; the capture, of complete conversations with many packets each, is not. GEE's error is its bias, which happens to
be near zero for the capture and is several times the threshold for the model: it has no way to tell the two apart.

HyperLogLog behind a hash sample is not in the paper: BeauCoup's own idea, to look at memory for some attributes only and for these always,
in front of another counter. For one key it is the best of all. It is no way to count many keys at once: its 64 registers are
twelve words a key where BeauCoup has one, an alert in the switch takes their harmonic mean too, and with window and key its accesses would be four.`)
	return p.Figure(fig, "access", "error against accesses a packet")
}

// drawn are the curves in the figure: it has seven colours.
var drawn = []int{0, 1, 2, 3, 5, 6, 9}

// panelOf a stream; above 100 % is room for the legend.
func panelOf(s *stream, curves []curve, legend bool) figure.Panel {
	panel := figure.Panel{Title: s.name, X: figure.Axis{Label: "accesses a packet", Base: 10},
		Y: figure.Axis{Label: "error, cut at 100 %", Min: 0, Max: 180, Every: 50, Format: percent}}
	if legend {
		panel.Legend = figure.TopLeft
	}
	for _, i := range drawn {
		c := curves[i]
		series := figure.Series{Name: c.name, Style: figure.Style{Marks: len(c.series) == 1}}
		for _, at := range c.series {
			if at.unending*10 < int(at.errors.n) {
				series.Points = append(series.Points, figure.Point{X: at.accesses.bias() + 1, Y: min(100, 100*at.errors.err())})
			}
		}
		panel.Series = append(panel.Series, series)
	}
	return panel
}

func showCurves(p *eval.Page, curves []curve) {
	t := &figure.Table{Columns: []string{"algorithm: accesses a packet; error; did not stop"}}
	for range targets {
		t.Columns = append(t.Columns, "")
	}
	for _, c := range curves {
		row := []string{c.name}
		for _, at := range c.series {
			cell := fmt.Sprintf("%.3g; %s", at.accesses.bias()+1, figure.Percent(at.errors.err()))
			if at.unending > 0 {
				cell += fmt.Sprintf("; %d", at.unending)
			}
			row = append(row, cell)
		}
		t.Add(row...)
	}
	p.Table(t)
}

// measure all algorithms over a number of runs.
func (s *stream) measure(ctx context.Context, runs int) ([]curve, error) {
	own := curve{"BeauCoup, m = 32", make([]standingAt, len(targets))}
	wide := curve{"BeauCoup, m = 64", make([]standingAt, len(targets))}
	for _, c := range []struct {
		curve *curve
		word  string
		words float64
	}{{&own, "32", accessesOfCoupon}, {&wide, "64", accessesOfCoupon + 1}} {
		if err := s.bytecode(ctx, c.curve.series, c.word, c.words, runs); err != nil {
			return nil, err
		}
	}
	curves := []curve{own, wide}
	for _, m := range makers {
		c := curve{m.name, make([]standingAt, len(targets))}
		if err := s.run(ctx, c.series, runs, m.make); err != nil {
			return nil, err
		}
		curves = append(curves, c)
	}
	for _, registers := range []int{16, 32, 64} {
		c := curve{fmt.Sprintf("HyperLogLog, %d registers", registers), make([]standingAt, 1)}
		if err := s.run(ctx, c.series, runs, func(float64, *rand.Rand) counter { return newHyperLogLog(registers, 1) }); err != nil {
			return nil, err
		}
		curves = append(curves, c)
	}
	return curves, nil
}

// run an algorithm in Go at every target.
func (s *stream) run(ctx context.Context, out []standingAt, runs int, make func(float64, *rand.Rand) counter) error {
	var mu sync.Mutex
	return bytecode.Parallel(ctx, runs*len(out), func(_ context.Context, n int) error {
		at, salt := n%len(out), seed(n/len(out)+5000)
		c := make(targets[at], rand.New(rand.NewPCG(salt, uint64(at))))
		count, stopped := s.stop(c, salt)
		mu.Lock()
		defer mu.Unlock()
		out[at].add(count, c.accesses()/float64(s.until(count)), stopped)
		return nil
	})
}

// stop is the exact count when a counter is above the threshold.
func (s *stream) stop(c counter, salt uint64) (count int, stopped bool) {
	words := 0.0
	for i, flow := range s.flows {
		c.add(scramble(uint64(flow)*0x9e3779b97f4a7c15 ^ salt))
		if now := c.accesses(); now != words {
			if words = now; c.estimate() > stopAt {
				return s.distinct[i], true
			}
		}
	}
	return s.distinct[len(s.distinct)-1], false
}

// until is the number of packets when there were so many flows.
func (s *stream) until(count int) int {
	for i, n := range s.distinct {
		if n >= count {
			return i + 1
		}
	}
	return len(s.distinct)
}

func (a *standingAt) add(count int, accesses float64, stopped bool) {
	a.errors.add(float64(count), stopAt)
	a.accesses.add(accesses, 1)
	if !stopped {
		a.unending++
	}
}

// replayWindows is how often a loaded program gets the stream, with new hashes each time.
const replayWindows = 50

// looped is the stream again and again, a packet every gap.
type looped struct {
	s     *stream
	times int
	sent  int
}

// Next implements traffic.Model.
func (l *looped) Next(p *packet.Packet) bool {
	if l.sent == l.times*len(l.s.packets) {
		return false
	}
	*p = l.s.packets[l.sent%len(l.s.packets)]
	p.Time = traffic.Start + int64(l.sent)*gap
	l.sent++
	return true
}

// bytecode measures BeauCoup.
func (s *stream) bytecode(ctx context.Context, out []standingAt, word string, words float64, runs int) error {
	window := time.Duration(len(s.packets)) * gap
	configs := make([]bytecode.Config, len(out))
	for i := range configs {
		configs[i] = bytecode.Config{Algorithm: beaucoup.Name, Set: map[string]string{"rotate": "true", "entries": "64", "coupons": word, "budget": fmt.Sprint(targets[i] / words),
			"queries": fmt.Sprintf("flows: count distinct src+dst+sport+dport by proto > %d in %v", stopAt, window)}}
	}
	var mu sync.Mutex
	times := min(runs, replayWindows)
	return bytecode.Parallel(ctx, runs/times, func(ctx context.Context, n int) error {
		lines, err := bytecode.ReplayWith(ctx, traffic.Frames(&looped{s: s, times: times}), session.Config{Seed: seed(n), Window: window}, configs)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range lines {
			list, err := alertsOf(&lines[i])
			if err != nil {
				return err
			}
			count := s.distinct[len(s.distinct)-1]
			if len(list) > 0 {
				count = s.distinct[int((list[0].time-traffic.Start)/gap)%len(s.packets)]
			}
			out[i%len(out)].add(count, value(&lines[i].Report, "accesses_per_packet")*words/accessesOfCoupon, len(list) > 0)
		}
		return nil
	})
}

// compare writes how many times fewer accesses BeauCoup makes for equal errors.
func compare(p *eval.Page, s *stream, curves []curve) {
	t := &figure.Table{Columns: []string{"accesses a packet for an error of at most", "50 %", "40 %", "30 %", "25 %", "20 %", "18 %"}}
	levels := []float64{.5, .4, .3, .25, .2, .18}
	own := make([]float64, len(levels))
	for i, level := range levels {
		own[i] = min(curves[0].need(level), curves[1].need(level))
	}
	for _, c := range curves[:7] {
		row := []string{c.name}
		for i, level := range levels {
			if need := c.need(level); math.IsInf(need, 1) {
				row = append(row, "-")
			} else {
				row = append(row, fmt.Sprintf("%.3g (%s)", need, figure.Factor(need/own[i])))
			}
		}
		t.Add(row...)
	}
	p.Table(t)
	for _, rival := range curves[2:6] {
		p.Bar(fmt.Sprintf("%s: accesses for equal error, %s against BeauCoup", s.name, rival.name), "4 times as many", factors(rival, own, levels), least(rival, own, levels) >= 4)
	}
	hll(p, s, curves)
}

// need is the number of accesses that bring the error down to a level, between two measured points by a line in logarithms.
func (c *curve) need(level float64) float64 {
	best := math.Inf(1)
	for i, at := range c.series {
		x, e := at.accesses.bias()+1, at.errors.err()
		if e <= level {
			best = min(best, x)
		}
		if i == 0 {
			continue
		}
		x2, e2 := c.series[i-1].accesses.bias()+1, c.series[i-1].errors.err()
		if e > level && e2 <= level && x < x2 {
			share := math.Log(e/level) / math.Log(e/e2)
			best = min(best, x*math.Pow(x2/x, share))
		}
	}
	return best
}

// factors lists by how many times more accesses a rival makes, and least is the smallest. What it cannot reach with one access
// a packet is left out, and what BeauCoup cannot reach is not there to be compared.
func factors(rival curve, own, levels []float64) string {
	text := ""
	for i, level := range levels {
		if need := rival.need(level); !math.IsInf(need, 1) && !math.IsInf(own[i], 1) {
			text += fmt.Sprintf("%s at %s, ", figure.Factor(need/own[i]), figure.Percent(level))
		} else if !math.IsInf(own[i], 1) {
			text += fmt.Sprintf("more than %s at %s, ", figure.Factor(1/own[i]), figure.Percent(level))
		}
	}
	return text[:max(0, len(text)-2)]
}

func least(rival curve, own, levels []float64) float64 {
	smallest := math.Inf(1)
	for i, level := range levels {
		if !math.IsInf(own[i], 1) {
			smallest = min(smallest, min(rival.need(level), 1)/own[i])
		}
	}
	return smallest
}

// hll compares with HyperLogLog, whose accesses are one a packet whatever its error.
func hll(p *eval.Page, s *stream, curves []curve) {
	for i := len(curves) - 3; i < len(curves); i++ {
		e := curves[i].series[0].errors.err()
		need := min(curves[0].need(e), curves[1].need(e))
		measured := fmt.Sprintf("%.1f %%: not reached", 100*e)
		if !math.IsInf(need, 1) {
			measured = fmt.Sprintf("%.1f %%: %.2g accesses against 1, %s", 100*e, need, figure.Factor(1/need))
		}
		p.Bar(fmt.Sprintf("%s: accesses for equal error, %s against BeauCoup", s.name, curves[i].name), "4 times as many", measured, 1/need >= 4)
	}
}
