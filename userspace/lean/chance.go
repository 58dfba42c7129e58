package lean

import (
	"math"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// chance is the share p of segments that the fridge follows, and what its delays are worth. With p=auto it goes with the
// load: few records are overwritten before their ACK comes, and a busy link reads its clock for few packets only.
type chance struct {
	auto  bool
	p     float64
	most  float64 // merged: the largest p, where p is the smallest
	rate  float64 // insertions a second
	slots int     // M
	last  load    // of this bank, at the last look
	at    int64   // time of it, ns

	share, worth *maps.Array
	told         [2]float64 // p and rate that the program was told; a link at rest changes neither
}

// load is what the counters say of the fridge.
type load struct{ requests, inserted uint64 }

const (
	leastP = 1.0 / 1024
	// pressure is how many requests may come into the fridge while one of them waits for its ACK, in parts of the fridge.
	pressure = 0.5
	// typical is the delay that this is meant for, in seconds: most round trips are shorter.
	typical = 0.1
	// heaviest bounds what one delay stands for, in those that were admitted.
	heaviest = 512
	// squareUnit is what the sum of squares is kept in: struct lean_worth.
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

// bind writes the first p, and what delays are worth while the load is not known.
func (c *chance) bind(set *maps.Set, slots int) (err error) {
	c.slots, c.told = max(slots, 2), [2]float64{}
	if c.share, err = set.Array("lean_lat_p"); err != nil {
		return err
	}
	if c.worth, err = set.Array("lean_lat_worth"); err != nil {
		return err
	}
	return c.publish()
}

func (c *chance) publish() error {
	if now := [2]float64{c.p, c.rate}; now == c.told {
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
	c.told = [2]float64{c.p, c.rate}
	return nil
}

// worth is struct lean_worth: what a delay of a bin adds to the sketch beside itself, in ticks; how many delays it stands for, in
// sixteenths; and the square of all that it adds, in 2^8.
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

// split takes what a delay added to the sketch, in ticks, apart: the delay and its weight.
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

// follow looks at what has come in this bank so far. closed: the bank starts from 0 next time.
func (c *chance) follow(now int64, l load, closed bool) error {
	passed := float64(now-c.at) / 1e9
	known := c.at != 0 && passed > 0
	came, inserted := float64(l.requests-min(c.last.requests, l.requests)), float64(l.inserted-min(c.last.inserted, l.inserted))
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
		c.choose(came / passed)
	}
	if c.p == before.p && math.Abs(c.rate-before.rate) <= 0.02*before.rate {
		return nil
	}
	return c.publish()
}

// choose p for a rate of requests a second. A change costs a little: none for a factor of two upwards.
func (c *chance) choose(rate float64) {
	p := share(rate, c.slots)
	if p == c.p || p == 2*c.p && p < 1 {
		return
	}
	c.rate *= p / c.p
	c.p = p
}

// share is the power of two that keeps the pressure for a rate of requests a second.
func share(rate float64, slots int) float64 {
	if rate <= 0 {
		return 1
	}
	most := pressure * float64(slots) / typical / rate
	return min(1, max(leastP, math.Exp2(math.Floor(math.Log2(most)))))
}
