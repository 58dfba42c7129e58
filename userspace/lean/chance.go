package lean

import (
	"math"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// chance is the probability p that the fridge follows a segment, and the weights of its delays. With p=auto it falls as the load
// rises, so that few records are overwritten before their ACK arrives and a busy link reads its clock for few packets only.
type chance struct {
	auto  bool
	p     float64
	most  float64 // merged hosts: the largest p; the field p is then the smallest
	rate  float64 // insertions a second
	slots int     // M
	last  load    // of this bank, when it was last read
	at    int64   // time of that read, ns

	share, worth *maps.Array
	published    [2]float64 // p and rate that were last written to the maps; an idle link changes neither
}

// load holds the fridge's counters: segments that ask for an ACK, and records inserted.
type load struct{ requests, inserted uint64 }

const (
	leastP = 1.0 / 1024
	// pressure is how many requests may be inserted while one of them waits for its ACK, as a fraction of the fridge's slots.
	pressure = 0.5
	// typical is the delay that p is chosen for, in seconds: most round trips are shorter.
	typical = 0.1
	// heaviest bounds the weight of one delay, in admitted delays.
	heaviest = 512
	// squareUnit is the unit of the sum of squares: struct lean_worth.
	squareUnit = 256
)

func newChance(v algo.Values) (*chance, error) {
	if v.Text("p") == "auto" {
		return &chance{auto: true, p: 1}, nil
	}
	p, err := algo.ParseFloat(v.Text("p"))
	if err != nil || !(p >= leastP && p <= 1) {
		return nil, v.Error("p", "auto, or a share from 1/1024 to 1")
	}
	return &chance{p: p}, nil
}

// bind writes the first p, and the weights of delays that apply until the load is known.
func (c *chance) bind(set *maps.Set, slots int) (err error) {
	c.slots, c.published = max(slots, 2), [2]float64{}
	if c.share, err = set.Array("lean_lat_p"); err != nil {
		return err
	}
	if c.worth, err = set.Array("lean_lat_worth"); err != nil {
		return err
	}
	return c.publish()
}

func (c *chance) publish() error {
	if now := [2]float64{c.p, c.rate}; now == c.published {
		return nil
	}
	if err := c.share.Write(0, []uint64{uint64(math.Round(c.p * (1 << 16)))}); err != nil {
		return err
	}
	words := make([]uint64, 2*delayBins.Len())
	for i := range delayBins.Len() {
		w := c.worthOf(i)
		words[2*i] = uint64(w.stands)<<32 | uint64(w.more)
		words[2*i+1] = w.square
	}
	if err := c.worth.Write(0, words); err != nil {
		return err
	}
	c.published = [2]float64{c.p, c.rate}
	return nil
}

// worth is struct lean_worth: what a delay of a bin adds to the sketch on top of its own length, in ticks; how many delays it
// stands for, in sixteenths; and the square of its total contribution, in units of 2^8.
type worth struct {
	more, stands uint32
	square       uint64
}

func (c *chance) worthOf(bin int) worth {
	low, high := delayBins.Range(bin)
	ticks := float64(low+high-1) / 2
	weight := c.weight(ticks * latencyTick / 1e9)
	value := min(math.Round(ticks*weight), math.MaxInt32/8)
	return worth{uint32(max(0, value-math.Round(ticks))), uint32(math.Round(weight * sixteenths)), uint64(value * value / squareUnit)}
}

// weight is p^-1 (1 - 1/M)^-x for a delay in seconds, x being the insertions in that time.
func (c *chance) weight(delay float64) float64 {
	return min(math.Exp(-c.rate*delay*math.Log1p(-1/float64(c.slots))), heaviest) / c.p
}

// split recovers a delay and its weight from their product, which was added to the sketch; both in ticks.
func (c *chance) split(added float64) (ticks, weight float64) {
	low, high := 0.0, added*c.p // the weight grows with the delay
	for range 40 {
		ticks = (low + high) / 2
		if weight = c.weight(ticks * latencyTick / 1e9); ticks*weight < added {
			low = ticks
		} else {
			high = ticks
		}
	}
	return ticks, weight
}

// follow adjusts p to the load of this bank so far. closed: the window is over, so the bank's counters restart from 0.
func (c *chance) follow(now int64, l load, closed bool) error {
	passed := float64(now-c.at) / 1e9
	known := c.at != 0 && passed > 0
	arrived, inserted := float64(l.requests-min(c.last.requests, l.requests)), float64(l.inserted-min(c.last.inserted, l.inserted))
	c.last, c.at = l, now
	if closed {
		c.last = load{}
	}
	if !known {
		return nil
	}
	before := *c
	c.rate = inserted / passed
	if c.auto {
		c.choose(arrived / passed)
	}
	if c.p == before.p && math.Abs(c.rate-before.rate) <= 0.02*before.rate {
		return nil
	}
	return c.publish()
}

// choose p for a rate of requests a second. Every change of p costs accuracy, so an increase by one factor of two is ignored.
func (c *chance) choose(rate float64) {
	p := share(rate, c.slots)
	if p == c.p || p == 2*c.p && p < 1 {
		return
	}
	c.rate *= p / c.p
	c.p = p
}

// share is the largest power of two that keeps the fridge below the constant pressure at a rate of requests a second.
func share(rate float64, slots int) float64 {
	if rate <= 0 {
		return 1
	}
	most := pressure * float64(slots) / typical / rate
	return min(1, max(leastP, math.Exp2(math.Floor(math.Log2(most)))))
}
