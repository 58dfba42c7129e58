// Command matrix measures what AHAB's ceilings hold with real TCP: cells drawn by a seed from rates, congestion controls, numbers of flows, round trips, segments
// and hooks, then users who send datagrams, and three guests of different kinds. `make ahab-matrix` writes docs/eval/ahab-matrix.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/lab/queue/dctcp"
)

var (
	binary  = flag.String("xdpmon", "bin/xdpmon", "the binary")
	seconds = flag.Int("seconds", 10, "of a cell, after three that only the ceiling is judged by")
	seed    = flag.Uint64("seed", 24, "of what is drawn")
	cells   = flag.Int("cells", 60, "that are drawn")
	first   = flag.Int("first", 0, "number of the first one")
	sets    = flag.String("set", "", "parameters, with commas between")
	loud    = flag.Bool("v", false, "print each second what the senders know")
	one     = flag.String("cell", "", "RATE,CONGESTION,FLOWS,TRIP,gso or nothing,HOOK, or crowds, or guests, or drawn:FIRST:COUNT; measure these instead, with semicolons between")
	runs    = flag.Int("runs", 1, "runs of each of them")
	out     = flag.String("out", "", "write the document here")
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("matrix: ")
	flag.Parse()
	if err := all(); err != nil {
		log.Fatal(err)
	}
}

// draw is the same for the same seed and number, whatever else is drawn. Only a bare veth carries aggregates.
func draw(seed uint64, n int) cell {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	c := cell{Rate: []int{5, 20, 100, 500}[r.IntN(4)], Congestion: []string{"cubic", "reno", "bbr", "dctcp"}[r.IntN(4)], Flows: []int{1, 4, 16}[r.IntN(3)],
		Trip: []time.Duration{50 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond}[r.IntN(4)], GSO: r.IntN(2) == 0,
		Hook: []string{"xdp", "tc", "egress"}[r.IntN(3)]}
	c.GSO = c.GSO && c.Trip < time.Millisecond
	return c
}

// crowds are users of one slice by address: datagrams of 60 Mbit/s each through 100, and guests of three kinds through 60.
func crowds() (list []cell) {
	for _, n := range []int{1, 2, 4, 8, 16} {
		c := cell{Rate: 100, Congestion: "cubic", Hook: "tc"}
		for range n {
			c.Guests = append(c.Guests, guest{UDP: 60e6})
		}
		list = append(list, c)
	}
	return append(list, guests()...)
}

func guests() []cell {
	three := []guest{{UDP: 50e6}, {TCP: 1}, {TCP: 8}}
	return []cell{{Rate: 60, Congestion: "cubic", Hook: "tc", Guests: three}, {Rate: 60, Congestion: "cubic", Hook: "tc", Guests: three, GSO: true}}
}

func parse(text string) (c cell, err error) {
	w := strings.Split(text, ",")
	if len(w) != 6 {
		return c, fmt.Errorf("%q is no cell", text)
	}
	_, rate := fmt.Sscan(w[0], &c.Rate)
	_, flows := fmt.Sscan(w[2], &c.Flows)
	c.Congestion, c.GSO, c.Hook = w[1], w[4] == "gso", w[5]
	c.Trip, err = time.ParseDuration(w[3])
	return c, errors.Join(rate, flows, err)
}

// chosen are the cells to measure.
func chosen() (list []cell, err error) {
	if *one == "" {
		for n := *first; n < *first+*cells; n++ {
			list = append(list, draw(*seed, n))
		}
		return append(list, crowds()...), nil
	}
	for _, text := range strings.Split(*one, ";") {
		if text == "crowds" {
			list = append(list, crowds()...)
			continue
		}
		if text == "guests" {
			list = append(list, guests()...)
			continue
		}
		var from, count int
		if n, _ := fmt.Sscanf(text, "drawn:%d:%d", &from, &count); n == 2 {
			for n := from; n < from+count; n++ {
				list = append(list, draw(*seed, n))
			}
			continue
		}
		c, err := parse(text)
		if err != nil {
			return nil, err
		}
		for range *runs {
			list = append(list, c)
		}
	}
	return list, nil
}

func all() (err error) {
	end, err := dctcp.Register()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	list, err := chosen()
	if err != nil {
		return err
	}
	d := &document{}
	for n, c := range list {
		if *sets != "" {
			c.Set = strings.Split(*sets, ",")
		}
		t, err := c.run(*binary, time.Duration(*seconds)*time.Second)
		if err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
		r := c.judge(t)
		log.Printf("%d: %v: %+v %v", n, c, r, c.misses(r))
		if *loud {
			fmt.Fprintln(os.Stderr, t.hundredths())
		}
		if d.add(c, r); *out != "" {
			if err := d.write(*out); err != nil {
				return err
			}
		}
	}
	return nil
}

// result of a cell, in parts of the rate.
type result struct {
	use, most float64 // after settling; in any second
	off       float64 // mean deviation of users' means from a share of what passed
	farthest  float64 // the largest of them
	shares    []float64
	open      float64 // segments that passed since the lease had run out

	marked, dropped float64 // segments
	refused         float64 // ... of those dropped, by a ceiling
}

func (c cell) judge(t *trace) (r result) {
	rate := float64(c.Rate) * 1e6 / 8
	from, last := int(settling/step), len(t.at)-1
	r.use = (t.wire[last] - t.wire[from]) / rate / t.at[last].Sub(t.at[from]).Seconds()
	for begin, n := 0, 1; n <= last; n++ { // readers that were late read several times in a row: ten readings may be of less than a second, in which a burst is a larger part
		for t.at[n].Sub(t.at[begin+1]) >= time.Second {
			begin++
		}
		if span := t.at[n].Sub(t.at[begin]); span >= time.Second {
			r.most = max(r.most, (t.wire[n]-t.wire[begin])/rate/span.Seconds())
		}
	}
	total, users := 0., float64(c.users())
	for i := range t.flows[0] {
		r.shares = append(r.shares, t.flows[last][i]-t.flows[from][i])
		total += r.shares[i]
	}
	for i := range r.shares {
		off := math.Abs(r.shares[i]/total*users - 1)
		r.off, r.farthest = r.off+off/users, max(r.farthest, off)
		r.shares[i] *= 1514. / 1448 * 8 / 1e6 / t.at[last].Sub(t.at[from]).Seconds()
	}
	for _, w := range t.report {
		r.open += w.number("unlimited")
		r.marked, r.dropped = r.marked+w.number("segments_marked"), r.dropped+w.number("segments_dropped")
		r.refused += w.number("ceiling_dropped") + w.number("root_dropped")
	}
	return r
}

// Bars of the matrix.
const (
	burst      = .2 // seconds: ahab.burst
	burstTime  = time.Duration(burst * float64(time.Second))
	mostSecond = 1.02
	mostMean   = 1.01
	leastUse   = .9
	leastNear  = .8 // below a millisecond, where packets are dropped
	mostOff    = .16
	leastUDP   = .97 // of datagrams alone
	mostGuest  = .1  // any guest
)

// least use of a cell: of what is sent, where that is less than the rate.
func (c cell) least() float64 {
	sent := 0.
	for _, g := range c.Guests {
		if g.TCP > 0 {
			sent = math.Inf(1)
		}
		sent += g.UDP / 1e6 / float64(c.Rate)
	}
	switch {
	case sent > 0 && !math.IsInf(sent, 1):
		return leastUDP * min(1, sent)
	case c.Trip < time.Millisecond:
		return leastNear
	}
	return leastUse
}

// misses are the bars that a cell does not meet.
func (c cell) misses(r result) (list []string) {
	if r.most > mostSecond+burst {
		list = append(list, "a second")
	}
	if r.use > mostMean+max(0, burst/float64(*seconds)-.01) { // one burst more than the rate in any time; a hundredth of 20 s
		list = append(list, "the mean")
	}
	if r.use < c.least() {
		list = append(list, "use")
	}
	if r.off > mostOff || len(c.Guests) > 0 && r.farthest > mostGuest {
		list = append(list, "shares")
	}
	return list
}

func (t *trace) hundredths() string {
	var b strings.Builder
	for n := 1; n < len(t.at); n++ {
		fmt.Fprintf(&b, "%.0f ", (t.wire[n]-t.wire[n-1])*8/1e6/t.at[n].Sub(t.at[n-1]).Seconds())
	}
	return b.String()
}
