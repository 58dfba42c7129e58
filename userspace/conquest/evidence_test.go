package conquest

import (
	"math"
	"math/rand/v2"
	"testing"
)

// cells are fine and coarse ones of a flow, or of everybody, as bpf/conquest/snapshots.h and coarse.h keep them: {window, count} each.
type cells struct{ fine, coarse [4][2]uint64 }

// read is what counts of them, and what the oldest coarse window has.
func (k *cells) read(c *config, e *event, every bool) (sum, oldest uint64) {
	epoch, arrived := e.Time>>c.shift, (e.Time-e.Delay)>>c.shift
	first := arrived + 1 // of coarse windows: those that lie in the wait
	wide := e.Time >> (c.shift + c.coarse)
	if e.Wide == 0 {
		first = epoch - uint64(e.Reach)
	} else if every {
		first = (wide - uint64(e.Reach)) << c.coarse
	}
	for _, cell := range k.fine {
		if cell[0] >= first && cell[0] <= epoch {
			sum += cell[1]
		}
		if e.Wide == 0 && e.Reach > 0 && cell[0] == first {
			oldest = cell[1]
		}
	}
	for _, cell := range k.coarse {
		if e.Wide != 0 && cell[0]+uint64(e.Reach) >= wide {
			sum += cell[1]
			if cell[0]+uint64(e.Reach) == wide && e.Reach > 0 {
				oldest = cell[1]
			}
		}
	}
	if e.Reach > 0 {
		sum -= oldest - oldest*uint64(e.Edge)>>16
	}
	return sum, oldest
}

func (k *cells) write(c *config, e *event, n uint64, fold bool) {
	epoch := e.Time >> c.shift
	cell := &k.fine[epoch%4]
	if cell[0] == epoch {
		cell[1] += n
		return
	}
	if window := cell[0] >> c.coarse; fold && cell[1] > 0 {
		if to := &k.coarse[window%4]; to[0] == window {
			to[1] += cell[1]
		} else if to[0] < window {
			*to = [2]uint64{window, cell[1]}
		}
	}
	*cell = [2]uint64{epoch, n}
}

// plane is the data plane of one queue without collisions, and the truth.
type plane struct {
	c        *config
	flows    map[byte]*cells
	all      cells
	left     map[byte]*departed
	total    departed
	reported map[byte]uint64

	largest uint32
}

// leave takes a departure; the report is made if it is of a packet that waited and the first one of its flow in a window.
func (p *plane) leave(time, delay int64, flow byte, n uint64) (e event, reported bool) {
	c := p.c
	if p.flows[flow] == nil {
		p.flows[flow], p.left[flow] = &cells{}, &departed{}
	}
	e = culprit(time, flow, 0, 0)
	e.Delay, e.Largest = uint64(delay), p.largest
	shift := c.shift
	reach := func() uint32 { return uint32(e.Time>>shift - (e.Time-e.Delay)>>shift) }
	if e.Reach = reach(); int(e.Reach) > c.snapshots-1 {
		e.Wide, shift = 1, c.shift+c.coarse
		e.Reach = reach()
	}
	e.Edge, e.Oldest, e.OldestTotal = 1<<16, 0, 0
	if mask := uint64(1)<<shift - 1; e.Reach > 0 {
		e.Edge = uint32((mask + 1 - (e.Time-e.Delay)&mask) << 16 >> shift)
	}
	size, old := p.flows[flow].read(c, &e, false)
	total, oldTotal := p.all.read(c, &e, true)
	e.Size, e.Total, e.Oldest, e.OldestTotal = size, total, uint32(old), uint32(oldTotal)
	p.flows[flow].write(c, &e, n, e.Wide != 0)
	p.all.write(c, &e, n, true)
	p.left[flow].add(time, n)
	p.total.add(time, n)
	epoch := e.Time >> c.shift
	reported = delay >= c.tau/4 && size > 0 && p.reported[flow] != epoch
	if reported {
		p.reported[flow] = epoch
	}
	return e, reported
}

// A burst's sums are between their ends at every report: of packets and of aggregates, where a link is busy or stands still at times, in queues that fine snapshots see to the end of and in
// those that coarse ones do. What of the ends is known is of use: it is most of it.
func TestBoundsOfBursts(t *testing.T) {
	c := configured(t, map[string]string{"source": "qdisc"})
	for _, x := range []struct {
		name   string
		packet uint64
		rate   float64 // bytes a ns
		stands int64
		useful float64
		still  int // once in so many packets
	}{{"fine", 1500, .01, 4 * ms, .9, 1000}, {"between", 1500, .01, 9 * ms, .8, 1000}, {"coarse", 1500, .01, 25 * ms, .9, 1000}, {"long", 1500, .004, 200 * ms, .9, 1000}, {"longer than one", 1500, .002, 400 * ms, .8, 1000},
		{"aggregates", 45000, .01, 60 * ms, .4, 1000}, {"rare", 1500, .0005, 100 * ms, .8, 1000}, {"standing still", 1500, .01, 12 * ms, .5, 40}, {"rarer than snapshots", 1500, .0007, 9 * ms, .4, 100}} {
		r := rand.New(rand.NewPCG(3, x.packet))
		h, p := newHistory(), &plane{c: c, flows: map[byte]*cells{}, left: map[byte]*departed{}, reported: map[byte]uint64{}, largest: uint32(x.packet)}
		time, checked, worst := int64(10_000*ms), 0, 1.0
		for time < 13_000*ms {
			flow, n := byte(1), x.packet
			switch v := r.Float64(); {
			case v < .1:
				flow, n = 2, 1500
			case v < .13:
				flow, n = 3, 200
			}
			time += int64(float64(n) / x.rate)
			if r.IntN(x.still) == 0 {
				time += r.Int64N(x.stands)
			}
			e, reported := p.leave(time, min(x.stands, (time-10_000*ms)*x.stands/(500*ms))+r.Int64N(x.stands/20), flow, n)
			if !reported {
				continue
			}
			h.record(c, &e)
			b := h.open[0]
			if b == nil || !b.all.reported {
				continue
			}
			within := func(what string, part *portion, left *departed) {
				least, most, truth := part.least(), part.most, float64(left.between(b.from, part.until))
				checked++
				if least > truth+rounding || truth > most+rounding {
					t.Fatalf("%s: of %s left %g after %d ms: from %g to %g", x.name, what, truth, (part.until-b.from)/ms, least, most)
				}
				if part.until-b.from > 500*ms && flow == 1 && what != "others" {
					worst = min(worst, least/truth)
				}
			}
			within("all", &b.all, &p.total)
			for i := range b.flows {
				for flow, left := range p.left {
					if b.flows[i].key == c.spec.Clean(culprit(0, flow, 0, 0).Key) {
						within([]string{1: "the largest", 2: "others", 3: "others"}[flow], &b.flows[i].part, left)
					}
				}
			}
		}
		if checked < 100 || worst < x.useful || math.IsNaN(worst) {
			t.Errorf("%s: %d sums, of which .%02.0f are known at least; want .%02.0f", x.name, checked, 100*worst, 100*x.useful)
		}
		t.Logf("%s: %d sums, of which %.3f are known", x.name, checked, worst)
	}
}
